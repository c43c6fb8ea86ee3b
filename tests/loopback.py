"""Servers on loopback that stand for the package index and for the hub."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import tiny

COMMIT = "0" * 39 + "1"


class Server(ThreadingHTTPServer):
    """Answers from ``self.reply``; quiet, and gone with its fixture."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.reply(self, unquote(urlsplit(self.path).path))

    do_HEAD = do_GET

    def log_message(self, *_) -> None:
        pass

    def answer(self, body: bytes, kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


class Index(Server):
    """The package index: one wheel. ``mode``: whole, cut (half a file) or stuck (half, then silence)."""

    def __init__(self) -> None:
        self.mode, self.downloads = "whole", 0
        self.half_sent, self.go_on = threading.Event(), threading.Event()
        super().__init__()

    def reply(self, request: Handler, path: str) -> None:
        if path == "/simple/tiny-corpus/":
            request.answer(f'<a href="/files/{tiny.FILE}">{tiny.FILE}</a>'.encode())
        elif path == f"/files/{tiny.FILE}":
            self.wheel(request)
        else:
            request.answer(b"", status=404)

    def wheel(self, request: Handler) -> None:
        body, mode = tiny.wheel_bytes(), self.mode
        self.downloads += 1
        if mode == "whole":
            return request.answer(body, "application/zip")
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: len(body) // 2])
        request.wfile.flush()
        self.half_sent.set()
        if mode == "stuck":
            self.go_on.wait(60)
        request.close_connection = True
        return None


class Hub(Server):
    """The hub's routes that `snapshot_download` asks: a repository's revision, its tree, its files."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}  # "datasets/owner/name/path" or "models/owner/name/path"
        self.asked: list[str] = []
        super().__init__()

    def reply(self, request: Handler, path: str) -> None:
        self.asked.append(path)
        kind, repo, action, rest = self.parse(path)
        prefix = f"{kind}/{repo}/"
        names = [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]
        if action == "revision" and names:
            siblings = [{"rfilename": name} for name in names]
            return self.json(request, {"id": repo, "sha": COMMIT, "private": False, "siblings": siblings, "tags": []})
        if action == "tree":
            return self.json(request, [self.entry(name, self.files[prefix + name]) for name in names])
        if action == "resolve" and prefix + rest in self.files:
            body = self.files[prefix + rest]
            return request.answer(body, ETag=f'"{hashlib.sha1(body).hexdigest()}"', X_Repo_Commit=COMMIT)
        return request.answer(b"{}", "application/json", 404, X_Error_Code="RepoNotFound")

    @staticmethod
    def parse(path: str) -> tuple[str, str, str, str]:
        parts = path.strip("/").split("/")
        if parts[0] == "api":  # api/datasets/owner/name/revision/…
            return parts[1], "/".join(parts[2:4]), parts[4] if len(parts) > 4 else "revision", ""
        kind = parts.pop(0) if parts[0] == "datasets" else "models"  # datasets/owner/name/resolve/COMMIT/path
        return kind, "/".join(parts[:2]), parts[2] if len(parts) > 2 else "", "/".join(parts[4:])

    @staticmethod
    def json(request: Handler, content: object) -> None:
        request.answer(json.dumps(content).encode(), "application/json")

    @staticmethod
    def entry(name: str, body: bytes) -> dict[str, object]:
        return {"type": "file", "path": name, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
