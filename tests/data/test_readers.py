"""Files of the public formats, read."""

import pytest

from course_lib.data.readers import babi


def test_the_public_format_is_read():
    text = "1 Mary moved to the bathroom.\n2 Where is Mary? \tbathroom\t1\n"
    text += "3 John got the milk.\n4 Who has it?\tjohn\t3 1\n"
    assert babi(text + "1 Joe slept.\n2 Where is Joe?\tbed\t1\n") == {
        "story": ["mary moved to the bathroom", "mary moved to the bathroom. john got the milk", "joe slept"],
        "question": ["where is mary", "who has it", "where is joe"],
        "answer": ["bathroom", "john", "bed"],
        "facts": ["0", "1 0", "0"],
    }
    with pytest.raises(ValueError, match="begin with its number"):
        babi("Mary moved to the bathroom.\n")
