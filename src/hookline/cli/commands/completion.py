"""The command that prints the completion script of a shell."""

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print the shell completion script.

    \b
    bash  hookline completion bash > ~/.local/share/bash-completion/completions/hookline
    zsh   hookline completion zsh > "${fpath[1]}/_hookline"
    fish  hookline completion fish > ~/.config/fish/completions/hookline.fish
    """
    from click.shell_completion import get_completion_class

    from hookline.cli.overview import NAME
    from hookline.cli.root import root

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion script for {shell}.")
    # Without the class's check of the installed bash: the script may be meant for another machine.
    words = kind(root, {}, NAME, f"_{NAME.upper()}_COMPLETE")
    click.echo(words.source_template % words.source_vars())
