"""Notebooks as tests: they run with no key and no network, and must say what they said.

``sagents-nb test-notebook PATH…``, or ``pytest --sagents``, runs notebooks by nbval in kernels
of their own. Models other than the demo and the scripted one are replayed from the cassette
beside the notebook, ``name.cassette.json``; nobody can click, so each session's headless
policy decides; and no socket of the kernel's Python connects to anywhere, while processes that a
cell starts are not held back: see ``guard.py``. What a browser has saved is tested as it is: see
``comparison.py``. ``test-notebook --record`` asks the models anew.
"""
