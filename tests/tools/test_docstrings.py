from runlane.worker.tools.docstrings import read_docstring


def test_the_first_paragraph_and_the_arguments_are_read() -> None:
    read = read_docstring(
        """Look an order up
        in the shop.

        Not for the model.

        Args:
            order_id: Its number: as printed,
                or as mailed.
            since (date): Only newer ones.
            *rest: What else.
            bare:

        Returns:
            order: The order.
        """
    )
    assert read.description == "Look an order up in the shop."
    assert read.arguments == {
        "order_id": "Its number: as printed, or as mailed.",
        "since": "Only newer ones.",
        "rest": "What else.",
    }


def test_a_line_that_looks_like_an_argument_is_not_one_if_it_stands_deeper() -> None:
    read = read_docstring("Do.\n\nArgs:\n    a: One of\n        b: no argument\n")
    assert read.arguments == {"a": "One of b: no argument"}


def test_without_a_docstring_there_is_nothing() -> None:
    for text in (None, "", "  \n "):
        read = read_docstring(text)
        assert read.description is None
        assert read.arguments == {}
