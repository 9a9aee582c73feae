"""Cases nobody thought of: drawn, put to several voices, compared, shrunk and kept where the voices disagree.

``voice`` is whoever answers: the reference model (``model_voice``) or an engine (``engine_voice``). ``hunt`` draws and compares;
``known`` recognises what the model explains; ``shrinking`` makes a find small, ``find`` and ``writing`` keep it.
"""
