"""The program that a site's supervisor starts and starts anew: Flower's SuperNode, by our door."""

import sys

from tacit.federation.flower import start_supernode

if __name__ == "__main__":
    start_supernode(sys.argv[1:])
