#!/usr/bin/env python3
"""test_draft.py KERNELGEN: `kernelgen draft` with a server of this process that answers well, badly, slowly
and with hostile bytes. The first part of a URL's path names the behaviour."""

import http.server
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "sk-test-0123456789abcdef"
GOOD = "# Sums of rows.\nop row_sum(x: f32[P, D]) -> (y: f32[P])\n{\n    y[p] = sum(d) x[p, d]\n}\n"
WRONG = "op row_sum(x: f32[P, D]) -> (y: f32[P])\n{\n    y[p] = sum(d) x[p, e]\n}\n"
OUTSIDE = "op step(x: f32[P]) -> (y: f32[P])\n{\n    y[p] = x[p + 1] - x[p]\n}\n"
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\x08\x7f"
# What no output may hold, but line ends and tabs.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

requests = []  # (path, headers, body) in their order
failures = 0


def completion(text):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def fenced(text):
    return f"Here it is:\n\n```kg\n{text}```\nIt adds."


def said_before(body):
    return sum(m["role"] == "assistant" for m in body["messages"])


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def give(self, status, body, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def raw(self, *parts, pause=0.0):
        try:
            for part in parts:
                self.wfile.write(part)
                self.wfile.flush()
                time.sleep(pause)
        except OSError:
            pass  # the tool has hung up
        self.close_connection = True

    def do_GET(self):
        requests.append((self.path, dict(self.headers), None))
        self.give(200, b"{}")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        requests.append((self.path, dict(self.headers), body))
        name = self.path.split("/")[1]
        getattr(self, name, self.good)(body)

    # ---- answers that are read
    def good(self, _):
        self.give(200, completion(fenced(GOOD)))

    def second(self, body):
        self.give(200, completion(fenced(GOOD if said_before(body) else WRONG)))

    def outside(self, body):
        self.give(200, completion(fenced(GOOD if said_before(body) else OUTSIDE)))

    def chatter(self, body):
        self.give(200, completion(fenced(GOOD) if said_before(body) else "Which dtype do you want?"))

    def never(self, body):
        self.give(200, completion(fenced(WRONG.replace("e]", f"e{said_before(body)}]"))))

    def parts(self, _):
        parts = [{"type": "text", "text": part} for part in ("```\n" + GOOD[:40], GOOD[40:], "```")]
        self.give(200, json.dumps({"choices": [{"message": {"content": parts}}]}).encode())

    def controls(self, _):
        self.give(200, completion(fenced(f"# {HOSTILE}\r\n{GOOD}")))

    def repeats_key(self, _):
        self.give(200, completion(fenced(f"# {KEY}\n{GOOD}")))

    # ---- refusals
    def status(self, code, message):
        self.give(code, json.dumps({"error": {"message": message}}).encode())

    def s401(self, _):
        self.status(401, f"Incorrect API key provided: {self.headers['Authorization'][7:]}")

    def s429(self, _):
        self.status(429, "Rate limit reached")

    def s500(self, _):
        self.give(500, b"<html>" + HOSTILE.encode() + b"</html>")

    def s418(self, _):
        self.status(418, HOSTILE + "teapot\n\nsecond line")

    def redirect(self, _):
        self.give(307, b"", Location=f"http://127.0.0.1:{self.server.server_port}/good/elsewhere")

    def circle(self, _):
        self.give(302, b"", Location=self.path)

    # ---- what is no answer
    def not_json(self, _):
        self.give(200, b"<html>welcome</html>")

    def empty(self, _):
        self.give(200, b"")

    def other_json(self, _):
        self.give(200, b'{"choices": [{"message": {"content": {"text": 3}}}]}')

    def nul(self, _):
        self.give(200, completion("op\x00 f()"))

    def bytes_nul(self, _):
        self.give(200, b'{"choices": \x00\x00}')

    def deep(self, _):
        self.give(200, b"[" * 900000)

    def not_utf8(self, _):
        self.give(200, b'{"choices": [{"message": {"content": "op \xff\xfe"}}]}')

    def huge_length(self, _):
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n{")

    def endless(self, _):
        self.raw(b"HTTP/1.1 200 OK\r\n\r\n", *[b" " * 65536] * 100)

    def short(self, _):
        self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}")

    def garbage(self, _):
        self.raw(HOSTILE.encode() * 100)

    def hang_up(self, _):
        self.raw()

    # ---- slowly
    def silent(self, _):
        time.sleep(4)
        self.close_connection = True

    def drips(self, _):
        self.raw(b"HTTP/1.1 200 OK\r\n\r\n", *[b" "] * 20, pause=0.2)

    def drips_headers(self, _):
        self.raw(b"HTTP/1.1 200 OK\r\n", *[b"X-Header: value\r\n"] * 20, pause=0.2)


def check(condition, what, *shown):
    global failures
    if not condition:
        failures += 1
        print("failed:", what, *(repr(one) for one in shown), sep="\n    ")


class Bench:
    def __init__(self, port, folder):
        self.port, self.folder = port, folder

    def environment(self, name, **more):
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": self.folder,
                       "KERNELGEN_HOME": f"{self.folder}/home", "KERNELGEN_DRAFT_KEY": KEY,
                       "KERNELGEN_DRAFT_URL": f"http://127.0.0.1:{self.port}/{name}"}
        for kept in ("ASAN_OPTIONS", "LD_LIBRARY_PATH"):
            if kept in os.environ:
                environment[kept] = os.environ[kept]
        environment.update(more)
        return {key: value for key, value in environment.items() if value is not None}

    def draft(self, name, *options, text="sums of rows", **more):
        """Runs it: exit status, standard output, standard error, seconds. What always holds is checked."""
        requests.clear()
        begin = time.monotonic()
        done = subprocess.run([PROGRAM, "draft", text, *options], capture_output=True, cwd=self.folder,
                              env=self.environment(name, **more), stdin=subprocess.DEVNULL, timeout=60)
        seconds = time.monotonic() - begin
        out, err = done.stdout.decode(), done.stderr.decode()
        check(KEY not in out + err, f"{name}: the key is not shown", out, err)
        check(not COMMANDS.search(out + err), f"{name}: nothing for a terminal to obey", out, err)
        return done.returncode, out, err, seconds

    def path(self, name):
        return pathlib.Path(self.folder, name)


def test_good(bench):
    status, out, err, _ = bench.draft("good", "-o", "a.kg", "--yes")
    check(status == 0 and bench.path("a.kg").read_text() == GOOD, "a definition is written", err)
    check("# row_sum: definition and analysis" in out and GOOD in out, "the document is shown", out)
    (path, headers, body), = requests
    check(path == "/good/v1/chat/completions", "the path", path)
    check(headers["Authorization"] == f"Bearer {KEY}", "the key is sent", headers)
    check([m["role"] for m in body["messages"]] == ["system", "user"] and "model" not in body, "the request")
    check(body["messages"][1]["content"] == "sums of rows", "the text is sent as it is")
    check(body["messages"][0]["content"] == (ROOT / "cli/prompts/draft.txt").read_text(), "the prompt")
    status, out, err, _ = bench.draft("good", "-o", "a.kg", "--yes")
    check(status == 2 and "--force" in err and not requests, "an existing file is kept", err)
    bench.path("a.kg").write_text("old")
    status, _, err, _ = bench.draft("good", "-o", "a.kg", "--yes", "--force")
    check(status == 0 and bench.path("a.kg").read_text() == GOOD, "--force replaces it", err)
    status, out, err, _ = bench.draft("good", "--lang", "zh", "-o", "zh.kg", "--yes")
    check(status == 0 and "定义" in out, "the document in Chinese", out)
    status, out, err, _ = bench.draft("good")
    check(status == 0 and out == GOOD, "without --out it is printed", out, err)
    status, out, err, _ = bench.draft("good", "-o", "b.kg")
    check(status == 2 and "--yes" in err and not requests and not bench.path("b.kg").exists(),
          "nobody is asked without a terminal", err)


def test_endpoints(bench):
    base = f"http://127.0.0.1:{bench.port}/good"
    for url in (base + "/v1", base + "/v1/", base + "/", base + "/v1/chat/completions",
                base[len("http://"):] + "/v1"):
        status, out, err, _ = bench.draft("", KERNELGEN_DRAFT_URL=url, KERNELGEN_DRAFT_MODEL="m7",
                                          KERNELGEN_DRAFT_KEY=None)
        check(status == 0 and out == GOOD, url, err)
        path, headers, body = requests[0]
        check(path == "/good/v1/chat/completions" and body["model"] == "m7", url, path)
        check("Authorization" not in headers, "no key, no header")
    bench.draft("", KERNELGEN_DRAFT_URL=base + "/api/v3?version=1")
    check(requests[0][0] == "/good/api/v3/chat/completions?version=1", "a query", requests[0][0])
    for url in (None, ""):
        status, out, err, _ = bench.draft("", "--json", KERNELGEN_DRAFT_URL=url)
        check(status == 3 and "KERNELGEN_DRAFT_URL" in err, "no endpoint", err)
        check("no endpoint" in json.loads(out)["error"], "as JSON", out)
    for url in ("ftp://x/v1", "http://user:secret@127.0.0.1/v1", "file:///etc/passwd"):
        status, _, err, _ = bench.draft("", KERNELGEN_DRAFT_URL=url)
        check(status == 2 and "secret" not in err and "passwd" not in err, url, err)
    status, _, err, _ = bench.draft("good", KERNELGEN_DRAFT_KEY="a\r\nX-Other: 1")
    check(status == 2 and "X-Other" not in err and not requests, "a key that would be a header", err)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1?token=hidden"
        status, _, err, _ = bench.draft("", KERNELGEN_DRAFT_URL=url)
        check(status == 3 and "hidden" not in err and "127.0.0.1" in err, "nobody listens", err)
        check("unencrypted" not in err, "the key stays on this machine", err)
    _, _, err, _ = bench.draft("", KERNELGEN_DRAFT_URL="http://localhost.invalid/v1")
    check("unencrypted" in err, "the key travels to a host whose name begins like this one's", err)


def test_corrections(bench):
    status, out, err, _ = bench.draft("second", "--json")
    answer = json.loads(out)
    check(status == 0 and answer["definition"] == GOOD and answer["drafts"] == 2, "the second is right", err)
    check(answer["written"] is None and [one["name"] for one in answer["documents"]] == ["row_sum"],
          "its documents", answer)
    sent = requests[1][2]["messages"]
    check([m["role"] for m in sent] == ["system", "user", "assistant", "user"], "the conversation")
    check(sent[2]["content"] == WRONG, "the draft goes back", sent[2])
    check("draft.kg:3:" in sent[3]["content"] and re.search(r"^ +\^", sent[3]["content"], re.M),
          "with the diagnostics and their caret", sent[3])
    for name, words in (("outside", "reads outside x"), ("chatter", "no definition")):
        status, out, err, _ = bench.draft(name)
        check(status == 0 and out == GOOD and words in requests[1][2]["messages"][3]["content"], name, err)
    status, out, err, _ = bench.draft("never", "-o", "never.kg", "--yes", "--json")
    check(status == 1 and len(requests) == 4 and not bench.path("never.kg").exists(), "never right", err)
    check("x[p, e3]" in err and "draft.kg:3:" in err, "the last draft and what is wrong with it", err)
    check("error" in json.loads(out), "a failure in JSON", out)
    status, out, err, _ = bench.draft("parts")
    check(status == 0 and out == GOOD, "an answer in parts", err)


def test_refusals(bench):
    for name, words in (("s401", "KERNELGEN_DRAFT_KEY"), ("s429", "Rate limit reached"), ("s500", "failed"),
                        ("s418", "teapot  second line"), ("redirect", "/good/elsewhere"),
                        ("circle", "elsewhere"), ("not_json", "not JSON"), ("empty", "not JSON"),
                        ("other_json", "choices[0]"), ("nul", "not JSON"), ("bytes_nul", "not JSON"),
                        ("deep", "not JSON"), ("not_utf8", "not JSON"), ("huge_length", "larger than"),
                        ("endless", "larger than"), ("short", ""), ("garbage", ""), ("hang_up", "")):
        status, out, err, seconds = bench.draft(name, "-o", "no.kg", "--yes", "--json")
        check(status == 3 and words in err and not bench.path("no.kg").exists(), name, status, err)
        check(json.loads(out)["error"] and seconds < 10 and len(requests) == 1, name, out, requests)
    status, _, err, _ = bench.draft("s401")
    check("****" in err and "status 401" in err, "the repeated key is overwritten", err)


def test_hostile_text(bench):
    status, out, err, _ = bench.draft("controls", "-o", "c.kg", "--yes")
    text = bench.path("c.kg").read_text()
    check(status == 0 and text.endswith(GOOD) and not COMMANDS.search(text), "no commands in the file", text)
    status, out, err, _ = bench.draft("repeats_key", "-o", "k.kg", "--yes")
    check(status == 0 and KEY not in bench.path("k.kg").read_text(), "nor the key")
    status, _, err, _ = bench.draft("good", text=b"sums \xff")
    check(status == 2 and not requests, "a text that is not UTF-8", err)


def test_slow(bench):
    for name in ("silent", "drips", "drips_headers"):
        status, _, err, seconds = bench.draft(name, "--time", "1")
        check(status == 3 and "no answer within 1 s" in err and seconds < 3, name, err, seconds)
    for sent in (signal.SIGINT, signal.SIGTERM):
        running = subprocess.Popen([PROGRAM, "draft", "sums", "-o", "i.kg", "--yes"], cwd=bench.folder,
                                   env=bench.environment("silent"), stderr=subprocess.PIPE)
        requests.clear()
        while not requests:
            time.sleep(0.01)
        shown = pathlib.Path(f"/proc/{running.pid}/environ").read_bytes()
        check(b"KERNELGEN_DRAFT_URL" in shown and KEY.encode() not in shown, "the key is in no environment")
        begin = time.monotonic()
        running.send_signal(sent)
        _, err = running.communicate(timeout=10)
        check(running.returncode == 130 and time.monotonic() - begin < 1.5, "Ctrl-C", running.returncode, err)
        check(not bench.path("i.kg").exists(), "and nothing is written")


def on_terminal(bench, answer):
    """The exit status, and what the terminal shows."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(bench.folder)
        os.execve(PROGRAM, [PROGRAM, "draft", "sums", "-o", "t.kg"], bench.environment("good"))
    shown = b""
    while select.select([terminal], [], [], 20)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        shown += part
        if b"[y/N]" in part:
            os.write(terminal, answer)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()


def test_terminal(bench):
    for answer in (b"n\n", b"\n", b"yikes\n", b"\x04"):
        status, shown = on_terminal(bench, answer)
        check(status == 1 and "nothing was written" in shown and not bench.path("t.kg").exists(), "no", shown)
    status, shown = on_terminal(bench, b"y\n")
    check(status == 0 and bench.path("t.kg").read_text() == GOOD, "yes", shown)
    check(shown.index("definition and analysis") < shown.index("[y/N]"), "shown before it is asked", shown)


def test_children(bench):
    bench.path("cc").write_text('#!/bin/sh\nenv >>"$SEEN"\nexec cc "$@"\n')
    bench.path("cc").chmod(0o755)
    bench.path("sum.kg").write_text(GOOD)
    done = subprocess.run([PROGRAM, "verify", "sum.kg", "--size", "P=3,D=5", "--device", "host"],
                          cwd=bench.folder, capture_output=True, text=True,
                          env=bench.environment("good", CC=str(bench.path("cc")), SEEN=str(bench.path("seen"))))
    seen = bench.path("seen").read_text()
    check(done.returncode == 0 and "KERNELGEN_DRAFT_URL" in seen, "a compiler ran", done.stderr)
    check(KEY not in seen, "compilers do not get the key")


def test_no_library(bench):
    bench.path("empty").mkdir()
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"):
        bench.path(f"empty/{name}").write_bytes(b"")
    status, _, err, _ = bench.draft("good", LD_LIBRARY_PATH=str(bench.path("empty")))
    check(status == 3 and "libcurl" in err and not requests, "without libcurl", err)


def test_prompt(bench):
    blocks = re.findall(r"^```kg\n(.*?)^```$", (ROOT / "cli/prompts/draft.txt").read_text(), re.S | re.M)
    check(len(blocks) >= 5, "the prompt has examples")
    for block in blocks:
        bench.path("example.kg").write_text(block)
        done = subprocess.run([PROGRAM, "check", "example.kg"], cwd=bench.folder, capture_output=True,
                              text=True, env=bench.environment("good"))
        check(done.returncode == 0 and "warning" not in done.stderr, "an example of the prompt is right",
              block, done.stderr)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(server.server_port, folder)
        test_no_library(bench)
        if "libcurl" in bench.draft("good")[2]:
            print("libcurl is not installed")
            sys.exit(1 if failures else 77)
        for test in (test_good, test_endpoints, test_corrections, test_refusals, test_hostile_text,
                     test_slow, test_terminal, test_children, test_prompt):
            test(bench)
    print(f"{failures} failed")
    sys.exit(1 if failures else 0)


main()
