"""Axes of a sweep that changed nothing."""

# What makes a run beside the axes; and figures that tell of the simulator, or of the configuration, not of what happened.
_IDENTITY = ("trace", "protocol", "seed")
_NOT_MEASURED = ("on_chip_bytes", "events", "activations")
# What says nothing of an axis: another try may end otherwise.
NO_OUTCOME = ("killed", "not_run")


def idle_axes(columns, rows):
    """Names of the axes that changed neither a figure nor whether a point ended well. `columns` have a name and a kind,
    `rows` are in their order. An axis is judged only by points that differ in nothing else, and of which some ended well:
    samples of many keys at once have none."""
    names = [column.name for column in columns]
    axes = [index for index, column in enumerate(columns) if column.kind == "axis"]
    identity = axes + [names.index(name) for name in _IDENTITY if name in names]
    figures = [index for index, column in enumerate(columns)
               if column.kind in ("result", "asked") and not column.name.startswith(_NOT_MEASURED)]
    status = names.index("status") if "status" in names else None

    def status_of(row):
        return "ok" if status is None else row[status]

    idle = []
    for axis in axes:
        groups = {}
        for row in rows:
            if status_of(row) not in NO_OUTCOME:
                others = tuple(row[index] for index in identity if index != axis)
                groups.setdefault(others, {}).setdefault(row[axis], (status_of(row), *(row[index] for index in figures)))
        compared = [list(group.values()) for group in groups.values() if len(group) > 1]
        if all(len(set(group)) == 1 for group in compared) and any(group[0][0] == "ok" for group in compared):
            idle.append(names[axis])
    return idle
