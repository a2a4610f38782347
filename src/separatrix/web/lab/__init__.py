"""The lab: a page that shows every step of training a small linear classifier.

A recipe (the settings of the page's controls) comes in; it is turned into an experiment (examples, feature map, learner),
trained, and returned as one JSON document with every step of the run, or as a standalone page that contains it.
"""
