// Keys and drops: what reaches the view from outside, and nothing of it that may go on to Jupyter.

const AGAIN = ["back", "next", "pageUp", "pageDown", "before", "after", "in", "out"]; // a held key repeats them
const EMPTY = ["open", "undo", "help", "close"]; // what there is to do where nothing is open

/** Lab acts on letters and arrows in command mode, so no plain key may pass the root. */
export function hearKeys(root, commands, { run, isOpen, leaveFilter }) {
  root.addEventListener("keydown", (event) => {
    const on = event.target, typing = on.localName === "input" && on.type === "search";
    if (event.ctrlKey || event.metaKey || event.altKey) return typing ? event.stopPropagation() : undefined;
    event.stopPropagation();
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (typing && key !== "Escape") return ["Enter", "ArrowDown"].includes(key) ? (event.preventDefault(), leaveFilter()) : undefined;
    if (on.localName === "select" && key !== "Escape") return;
    if ((key === " " || key === "Enter") && ["button", "summary", "input"].includes(on.localName)) return;
    const name = commands.find(([, keys]) => keys.includes(key))?.[0];
    if (!name || !(isOpen() || EMPTY.includes(name))) return;
    event.preventDefault();
    if (!event.repeat || AGAIN.includes(name)) run[name]();
  });
}

/** Files that are dragged over the view: `zone` shows where they can be dropped, `took` gets them. */
export function hearDrops(root, zone, { live, isOpen, took }) {
  const hasFiles = ({ dataTransfer }) => live && dataTransfer?.types.includes("Files");
  const take = (event) => {
    event.preventDefault();
    event.stopPropagation();
    return zone.show(event, isOpen());
  };
  for (const kind of ["dragenter", "dragover"]) root.addEventListener(kind, (event) => hasFiles(event) && take(event));
  root.addEventListener("dragleave", ({ relatedTarget }) => !root.contains(relatedTarget) && zone.show(null));
  root.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    const beside = take(event);
    zone.show(null);
    root.focus({ preventScroll: true }); // the keys go where the file went
    took([...event.dataTransfer.files], beside);
  });
}
