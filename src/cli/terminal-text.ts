/**
 * Text of others on a terminal: players' names, logs, file names, messages of a service. A terminal obeys
 * control characters in it, so text could move the cursor, change the clipboard or forge a line.
 */

/** C0 without the tab, DEL, C1, line separators, and the characters that change the reading direction. */
const controls =
  // oxlint-disable-next-line no-control-regex -- these characters are what the function is about
  /[\u0000-\u0008\u000A-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g

const escaped = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** One line without control characters: they are shown as `\u001b`. */
export const plainLine = (text: string): string => text.replace(controls, escaped)

/** The lines of a text, without control characters. Lines after the first are indented. */
export const plainLines = (text: string, indent: string): string =>
  text
    .split(/\r?\n/)
    .map((line, index) => (index === 0 ? "" : indent) + plainLine(line))
    .join("\n")

/**
 * JSON text with control characters as escapes, which have the same value. Line breaks between the values
 * stay; there are none within strings.
 */
export const plainJson = (json: string): string => json.split("\n").map(plainLine).join("\n")
