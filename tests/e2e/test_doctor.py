"""The Doctor screen in a real terminal."""


def test_it_tells_of_the_terminal_that_it_is_in(terminal):
    app = terminal(size=(100, 40))
    app.wait("No jobs yet")
    app.press(":")
    app.wait("Search for commands")
    app.press("doctor")
    app.wait("Doctor: check this installation")
    app.press("enter")
    app.wait(r"✓ terminal +100 columns, 40 rows")
    app.wait(r"✓ folders +state: ")
    app.wait(r"✓ local_cwd +this machine: ")
    app.press("escape")
    app.wait("No jobs yet")
    app.press("q")
    assert app.wait_for_end() == 0
