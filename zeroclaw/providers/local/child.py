"""Serves one model file on loopback: the child process of the local provider.

Started as a file, not as a module, so that nothing of zeroclaw is loaded here. It reads one JSON
line from standard input (`model_file`, `model`, `api_key`, `context_tokens`, `threads`,
`temperature`, `repeat_penalty`) and writes one to standard output (`{"url": …}` or
`{"error": …}`). It runs as long as standard input is open. The parent has the other end, so this
process ends with the parent, however that ends.
"""

import ctypes
import json
import os
import signal
import sys
from importlib import import_module

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOOKS_BACK_TOKENS = 256  # window of the repeat penalty; a paragraph or two


def die_with_the_parent(parent: int) -> None:
    """Have the kernel kill us with the parent: standard input is not read while a model loads."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before the call
            os._exit(1)


def main() -> None:
    """Load the model, serve it, and end with the parent."""
    die_with_the_parent(int(sys.argv[1]))
    settings = json.loads(sys.stdin.readline())
    # llama.cpp's C code prints to both outputs; the parent must get only the line below.
    answers = os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        xllamacpp = import_module("xllamacpp")  # ships no types
        params = xllamacpp.CommonParams()
        params.model.path = settings["model_file"]
        params.model_alias = {settings["model"]}
        params.hostnames, params.port = ["127.0.0.1"], 0
        params.api_keys = [settings["api_key"]]
        params.n_ctx, params.n_parallel = settings["context_tokens"], 1
        params.cpuparams.n_threads = settings["threads"]
        params.sampling.temp = settings["temperature"]
        params.sampling.penalty_repeat = settings["repeat_penalty"]
        params.sampling.penalty_last_n = LOOKS_BACK_TOKENS
        params.use_jinja = True
        params.warmup = False
        server = xllamacpp.Server(params)
    except (ImportError, RuntimeError, ValueError, OSError, TypeError, AttributeError) as error:
        # A build of the package with other parameters raises one of these, too.
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        answers.flush()
        os._exit(1)
    answers.write(json.dumps({"url": server.listening_address}) + "\n")
    answers.flush()
    sys.stdin.read()
    os._exit(0)  # the server's threads don't end on their own


if __name__ == "__main__":
    main()
