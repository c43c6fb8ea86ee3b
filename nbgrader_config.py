# For instructors: the lessons are nbgrader assignments as they are. See "For instructors" in the README.
c = get_config()  # noqa: F821

# The stubs hold no solution to clear; nbgrader's ClearSolutions would empty the whole cell.
c.GenerateAssignment.preprocessors = [
    "nbgrader.preprocessors.IncludeHeaderFooter",
    "nbgrader.preprocessors.LockCells",
    "nbgrader.preprocessors.ComputeChecksums",
    "nbgrader.preprocessors.SaveCells",
    "nbgrader.preprocessors.CheckCellMetadata",
    "nbgrader.preprocessors.ClearOutput",
]

c.Execute.timeout = 600
