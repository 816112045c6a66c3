"""The desk: a page on the holder's own machine, for a data officer without a terminal.

A face of the holder's side and nothing of its own: whatever a page does is a call that the command
line has, too.
"""
