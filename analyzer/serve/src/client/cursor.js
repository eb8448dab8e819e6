// The keyboard in a picture: what arrow keys move, seen while they are used.

/**
 * Lets keys act in a picture: `keys` has for each what it does, which returns false if it is none of its business.
 * `draw` draws the picture again. Returns whether the picture shows what keys move.
 */
export function byKeys(picture, keys, draw) {
  let isSeen = false;
  const see = (now) => {
    const isOther = isSeen !== now;
    isSeen = now;
    if (isOther) draw();
  };
  picture.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const act = keys[event.key];
    if (!act || act(event) === false) return;
    event.preventDefault();
    event.stopPropagation();
    isSeen = true;
    draw();
  });
  picture.addEventListener("focus", () => see(picture.matches(":focus-visible")));
  picture.addEventListener("blur", () => see(false));
  picture.addEventListener("pointerdown", () => see(false));
  return () => isSeen;
}

/** A number between others. */
export const within = (number, least, most) => Math.min(Math.max(number, least), Math.max(least, most));
