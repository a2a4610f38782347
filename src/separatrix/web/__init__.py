"""The lab and the feedback server: two applications on one skeleton. Needs the extra `separatrix[web]`."""
