"""Axes of a sweep that changed nothing."""

# What makes a run beside the axes; and figures that tell of the simulator, or of the configuration, not of what happened.
_IDENTITY = ("trace", "protocol", "seed")
_NOT_MEASURED = ("on_chip_bytes", "events", "activations")


def idle_axes(columns, rows):
    """Names of the axes that changed no figure. `columns` have a name and a kind, `rows`, of points that ended well, are in
    their order. An axis is judged only by points that differ in nothing else: samples of many keys at once have none."""
    names = [column.name for column in columns]
    axes = [index for index, column in enumerate(columns) if column.kind == "axis"]
    identity = axes + [names.index(name) for name in _IDENTITY if name in names]
    figures = [index for index, column in enumerate(columns)
               if column.kind in ("result", "asked") and not column.name.startswith(_NOT_MEASURED)]
    idle = []
    for axis in axes:
        groups = {}
        for row in rows:
            others = tuple(row[index] for index in identity if index != axis)
            groups.setdefault(others, {}).setdefault(row[axis], tuple(row[index] for index in figures))
        compared = [group.values() for group in groups.values() if len(group) > 1]
        if compared and all(len(set(group)) == 1 for group in compared):
            idle.append(names[axis])
    return idle
