"""The dossier: what an ethics board or data-protection officer asks, from study and ledger.

Its chapters stand in the order of NIST SP 800-226, Guidelines for Evaluating Differential Privacy
Guarantees: the guarantee, the algorithm, the deployment; then what only the holder can say. It is
written as a page, as Markdown and, for machines, as an entry for a registry of deployments.
"""

from tacit.holder.dossier.written import Dossier, dossier_of, write_dossier

__all__ = ["Dossier", "dossier_of", "write_dossier"]
