package mcproots

const native = windows
