"""What is written by others runs no program, loads nothing, and replaces nothing but files."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from sims import files
from sims.errors import InputError
from sims.judgement import Verdict
from sims.report import render_caption
from sims.report.text import MARKDOWN
from sims.simulation import native
from sims.study.results import Results
from tests.cli.small import run
from tests.pipeline import run as in_folder

NAMES = ["a;touch PWNED", "$(touch PWNED)", "a b", "`touch PWNED`", "-n", "a\nb", "a&b", "é"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_name_reaches_no_shell(folder, capsys, name):
    """By the command line."""
    Path("experiments/small").rename(Path("experiments", name))
    for command in ("simulate", "predict", "judge", "plot", "run"):
        assert run(command, "--fidelity", "smoke", "--", name) == 2
        assert "allowed: letters, digits and _" in capsys.readouterr().err
    assert not list(Path().rglob("PWNED*"))


@pytest.mark.parametrize(
    "config",
    [
        ("fidelity=smoke",),
        ("fidelity=smoke;touch PWNED",),
        ("fidelity=smoke", "experiment=$(touch PWNED)"),
        ("fidelity={a: $(touch PWNED)}",),
    ],
)
def test_neither_a_name_nor_a_setting_reaches_snakemake_s_shell(copy, config):
    name = "a;touch PWNED;$(touch PWNED2)" if config == ("fidelity=smoke",) else "b"
    (copy / "experiments/angles").rename(copy / "experiments" / name)
    done = in_folder(copy, "-m", "snakemake", "--cores", "1", "--quiet", "all", "--config", *config)
    lines = [x for x in done.stderr.splitlines() if not x.startswith("Using ")]
    assert (done.returncode, len(lines)) == (2, 1), done.stderr
    assert not list(copy.rglob("PWNED*"))


VERDICT = Verdict("c", "e", "all", "s", "supported", 0.1, (0.0, 0.2), 0.3, 0.9, 5, "r")
DATA = {"0": xr.Dataset(attrs={"replicates": 8})}
RESULTS = Results("e", "smoke", DATA, {}, {"k": 1}, {"0": {}}, {}, {})
HOSTILE = {
    "markup": [
        "<script>alert(1)</script>", "a <img src=x onerror=alert(1)> b", "<iframe src=//x.y>",
        "![](http://x.y/z.png)", "![](//x.y/z.png)", "[a](https://x.y)",
        "![][r]\n\n[r]: HTTPS://x.y/z.png", "<http://x.y>", "[a](javascript:alert(1))",
        "[a](&#106;avascript:alert(1))", "![](data:image/svg+xml;base64,PHN2Zz4=)",
        "[a](file:///etc/passwd)", "<a href='x'>a</a>", "<!-- a -->",
    ],
    "template": [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ verdict.__globals__ }}", "{{ verdict('c').__class__.__init__.__globals__ }}",
        "{{ settings.update({'k': 2}) }}", "{% include 'page.html.j2' %}",
        "{{ settings.__class__ }}", "{% for i in range(10**9) %}x{% endfor %}", "{{ 1 / 0 }}",
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE["template"])
def test_a_hostile_caption_is_refused(tmp_path, text):
    path = tmp_path / "caption.md"
    path.write_text(text)
    with pytest.raises(InputError, match=r"caption\.md"):
        render_caption(path, RESULTS, [VERDICT], {})


@pytest.mark.parametrize("text", [*HOSTILE["markup"], "<svg/onload=alert(1)>"])
def test_hostile_markdown_on_the_page_stays_text(text):
    page = MARKDOWN.render(text)
    for tag in ("<script", "<img", "<iframe", "<a ", "<svg", "<!--"):
        assert tag not in page


def test_a_caption_may_link_beside_it(tmp_path):
    path = tmp_path / "caption.md"
    path.write_text("![a](b/c.png), [d](../docs/theory.md#e), 1 < 2, `<i>`")
    assert render_caption(path, RESULTS, [VERDICT], {}).startswith("![a](b/c.png)")
    assert 'src="b/c.png"' in MARKDOWN.render(path.read_text())


LOAD = """
import sys
from sims.simulation import native
from sims.problem import KERNELS
assert native.usable(KERNELS["gaussian"], "cpu", 1e11), "no compiler"
print(native.library())
"""


def _load(cache, **more):
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)} | more
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return Path(done.stdout.strip())


def test_a_damaged_library_is_not_loaded(tmp_path, monkeypatch):
    """``build`` compiles it again; the compiler is a script that takes no time."""
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\nprintf "compiled" > "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    path = tmp_path / "sums-0.so"
    for damage in (None, b"", b"half", lambda whole: whole[:-3], lambda whole: b"x" + whole[1:]):
        if damage is not None:
            path.write_bytes(damage if isinstance(damage, bytes) else damage(path.read_bytes()))
        native.build(path)
        assert files.read(path, "sums-0") == b"compiled"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    native.build(path)  # whole: nothing to be compiled
    path.chmod(0o666)
    with pytest.raises(subprocess.CalledProcessError):
        native.build(path)


@pytest.mark.faults
def test_half_a_library_is_compiled_again(tmp_path):
    path = _load(tmp_path)
    whole = path.read_bytes()
    for damage in (whole[: len(whole) // 2], b"", whole[:5000] + b"\0" + whole[5001:]):
        path.write_bytes(damage)
        assert _load(tmp_path) == path
        assert files.read(path, path.stem)


def test_compiled_code_is_taken_from_a_private_folder_alone(tmp_path):
    """One that others may write, one that is another's, a link to one: none of them is used."""
    home = tmp_path / "nw-attention-sims"
    assert files.private(home) == home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    for mode in (0o770, 0o707, 0o1777):
        home.chmod(mode)
        other = files.private(home)
        assert other != home
        assert files.is_own(other)
        assert stat.S_IMODE(other.stat().st_mode) == 0o700
    home.chmod(0o755)
    assert files.private(home) == home
    (tmp_path / "link").symlink_to(home)
    assert files.private(tmp_path / "link") != tmp_path / "link"
    (tmp_path / "file").touch()
    assert files.private(tmp_path / "file") != tmp_path / "file"
    path = tmp_path / "lib.so"
    path.touch(mode=0o644)
    assert files.is_own(path)
    path.chmod(0o666)
    assert not files.is_own(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_another_user_owns_is_not_taken(tmp_path):
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    assert files.private(tmp_path / "theirs") != tmp_path / "theirs"


def test_compilations_of_jax_are_kept_in_a_private_folder(tmp_path):
    """``sims`` sets JAX's cache to a folder that nobody else can write."""
    code = "import os; from sims.cli import main; main(['schema', 'paper']); " \
        "print(os.environ['JAX_COMPILATION_CACHE_DIR'])"  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    environment |= {"XDG_CACHE_HOME": str(tmp_path)}

    def cache():
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        return Path(done.stdout.splitlines()[-1])

    own = cache()
    assert own.parent == tmp_path / "sims"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    own.chmod(0o777)
    assert cache() != own


def _pipe(path):
    os.mkfifo(path)


def _device(path):
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))


def _dangling(path):
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    "made", [_pipe, Path.mkdir, _dangling, pytest.param(_device, marks=pytest.mark.skipif(
        os.geteuid() != 0, reason="only root can make a device"))]
)  # fmt: skip
@pytest.mark.parametrize(
    "command",
    [("simulate", "small"), ("predict", "small"), ("judge", "small"), ("plot", "small"),
     ("ledger",), ("report",), ("audit",)],
)  # fmt: skip
def test_only_files_are_replaced(folder, capsys, made, command):
    path = folder / "there.pdf"
    made(path)
    before = path.lstat()
    assert run(*command, "--fidelity", "smoke", "--output", str(path)) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{path}: got 'no regular file'; allowed: a regular file, or none yet" in err
    after = path.lstat()  # looking at a link may move its time of access
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (
        before.st_ino, before.st_mode, before.st_mtime_ns
    )  # fmt: skip
