import { count } from "./steps.js";
import { plain, put } from "./inspector_marks.js";

// What the view asks of Python, which alone reads files, and what it hears from there. Without a
// kernel every question ends in a sentence, and the view goes on moving.

const PIECE = 1 << 20; // bytes of a file in one message; a server may refuse ten times that
const SILENCE = "No answer from Python yet: the kernel is busy, or not running.";

/** `frameNow()` is the frame in view, `isOpen()` whether there is one, `follow()` lets other views stand
 *  there; `answer` is where it is said. */
export function talk(model, live, answer, { frameNow, isOpen, follow, answered }) {
  let waiting = null, heard = null, settle = 0;

  function say(text, kind = "") {
    put(answer, text);
    answer.dataset.kind = kind;
  }
  function send(message, buffers) {
    try {
      model.send?.(message, undefined, buffers);
      return Boolean(model.send);
    } catch { // the kernel is gone; scrubbing goes on without it
      return false;
    }
  }
  function await_(id, seconds) {
    waiting = id;
    setTimeout(() => waiting === id && say(SILENCE, "problem"), seconds * 1000);
  }
  const newId = () => `${Date.now()}-${Math.random()}`;

  /** Tell where the view stands, once it has stood there for a moment. State that waits for a busy
   *  kernel comes late, and would undo what came first: it is for a model that takes no messages. */
  function tellSoon() {
    clearTimeout(settle);
    settle = setTimeout(() => {
      if (!live || !isOpen()) return;
      follow(); // other views of this model
      if (!send({ frame: frameNow() })) model.save_changes();
    }, 120);
  }
  const stop = () => clearTimeout(settle);

  function ask(action, more = {}) {
    if (!live) return;
    stop();
    const id = newId();
    say("asking Python …");
    await_(id, 3);
    if (isOpen()) follow();
    send({ frame: isOpen() ? frameNow() : 1, request: { id, action, ...more } });
  }
  async function sendFiles(found, beside) {
    const two = found.length > 1; // two at once: one, and the other beside it
    if (!found.length) return;
    await sendFile(found[0], !two && beside && isOpen());
    if (two) await sendFile(found[1], true);
    if (found.length > 2) say(`the first two of ${found.length} files`);
  }
  async function sendFile(file, beside) {
    const most = model.get("most"), id = newId(), name = plain(file.name, 200), { size } = file;
    if (size > most) return say(`${name}: ${count(size)} bytes are too many, ${count(most)} at most`, "problem");
    try {
      for (let at = 0; at === 0 || at < size; at += PIECE) {
        const piece = await file.slice(at, at + PIECE).arrayBuffer();
        if (size > PIECE) say(`sending ${name}: ${count(Math.min(at + PIECE, size))} of ${count(size)} bytes`);
        if (!send({ file: { id, name: file.name, size, at, beside } }, [piece])) throw new Error("no kernel");
      }
    } catch (why) { // a folder, or a file that is gone
      return say(`${name} cannot be read here (${why.message})`, "problem");
    }
    say(`Python reads ${name} …`);
    await_(id, 20);
  }
  /** Take Python's answer, if it is a new one. */
  function hear() {
    if (model.get("answer") === heard) return;
    heard = model.get("answer");
    if (!live || !heard) return;
    answered(heard);
    if (heard.id === waiting) waiting = null;
    say(plain(heard.text ?? "", 400), heard.ok === false ? "problem" : "");
  }
  return { ask, hear, say, sendFiles, stop, tellSoon };
}
