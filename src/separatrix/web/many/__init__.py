"""`separatrix serve --many`: many models behind one address, each the application of `web/server` on a store of its own.

Requests to `/models/NAME/…` come in and go to the application of that model (`app`), which is opened for the first of them
and closed, least recently used first, when memory or file descriptors run short (`models`). The writers of all models share
a few threads (`pool`); names are restricted to what every file system keeps apart (`names`).
"""
