import io

from rich.console import Console

from zhat import Progress


def test_the_bar_shows_steps_loss_and_time_left():
    screen = io.StringIO()
    with Progress("training", console=Console(file=screen, force_terminal=True, width=100)) as progress:
        progress(50, 100, 1.2345)
        progress._bar.refresh()
    shown = screen.getvalue()
    assert "50/100" in shown
    assert "loss 1.234" in shown
    assert "left" in shown
