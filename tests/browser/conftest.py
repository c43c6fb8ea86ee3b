"""A real JupyterLab and a real Chromium, both on the loopback interface only.

- ``jupyterlab``: JupyterLab on a new folder; ``.url``, ``.token``, ``.folder``.
- ``browser``: one headless Chromium for the session; whatever it asks of another machine fails and is recorded.
- ``notebook``: ``path = notebook.copy(lesson)``, ``notebook.open(path).run_all()``, ``.set_source(i, code)``,
  ``.run(i)`` (the text of the output), ``.output(i)``, ``.find(i, css)``, ``.errors()`` …
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import JupyterLab, Notebook, answers, free_port, wait

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1400,1000",
]


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory) -> Iterator[JupyterLab]:
    """JupyterLab serving a new, empty folder, with settings and kernels of its own."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: pip install -e '.[lab]'")
    home = tmp_path_factory.mktemp("jupyter")
    folder = home / "notebooks"
    folder.mkdir()
    page = home / "config" / "labconfig"
    page.mkdir(parents=True)
    quiet = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (page / "page_config.json").write_text(json.dumps(quiet), encoding="utf-8")
    port, token = free_port(), secrets.token_hex(16)
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.root_dir": folder,
        "IdentityProvider.token": token,
        "ServerApp.open_browser": False,
        "LabApp.expose_app_in_browser": True,  # window.jupyterapp, which the tests steer
        "LabApp.workspaces_dir": home / "workspaces",
        "LabApp.user_settings_dir": home / "settings",
    }
    command = [sys.executable, "-m", "jupyterlab", "--allow-root", *(f"--{k}={v}" for k, v in options.items())]
    log = home / "log"
    with log.open("w", encoding="utf-8") as output:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}"
    try:
        wait(lambda: server.poll() is not None or answers(f"{url}/api?token={token}"), 60, "JupyterLab to start")
        assert server.poll() is None, log.read_text(encoding="utf-8")
        yield JupyterLab(url, token, folder)
    finally:
        server.terminate()  # ends its kernels too
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Chromium that reaches this machine only: everything else goes to a proxy that does not exist."""
    if not CHROMIUM or not CHROMEDRIVER:
        pytest.skip("no Chromium here: install chromium and chromedriver (Debian: chromium chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install -e '.[test]'")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    nowhere = f"127.0.0.1:{free_port()}"
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}", f"--proxy-server={nowhere}"):
        options.add_argument(flag)
    options.add_argument("--proxy-bypass-list=127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def notebook(browser, jupyterlab) -> Iterator[Notebook]:
    """A driver for notebooks in the served folder."""
    driver = Notebook(browser, jupyterlab)
    yield driver
    driver.close()
