/** Statements in a text of SQL, as SQLite separates them. Pure. */

/** Comments, quoted text and names, words, and semicolons. A part without its end goes to the end. */
const parts = new RegExp(
  [
    /--[^\n]*/,
    /\/\*[\s\S]*?(?:\*\/|$)/,
    /'(?:[^']|'')*(?:'|$)/,
    /"(?:[^"]|"")*(?:"|$)/,
    /`(?:[^`]|``)*(?:`|$)/,
    /\[[^\]]*(?:\]|$)/,
    /[\w$\u0080-\uFFFF]+/,
    /\S/
  ]
    .map(({ source }) => source)
    .join("|"),
  "g"
)

const isComment = (part: string): boolean => part.startsWith("--") || part.startsWith("/*")

const triggerForm = /^(?:explain )?create (?:temp |temporary )?trigger$/

/** Longest start of a statement that decides whether it makes a trigger: `explain create temp trigger`. */
const headWords = 4

/**
 * Whether a text has more than one statement. The body of a trigger has statements of its own, and ends with
 * `end` between semicolons; a `case` ends with the same word.
 */
export const hasSeveralStatements = (sql: string): boolean => {
  let head: Array<string> = []
  let isTrigger = false
  let last = ""
  let isBodyEnd = false
  let hasEnded = false
  for (const [part] of sql.matchAll(parts)) {
    if (isComment(part)) continue
    if (part === ";") {
      if (isTrigger && !isBodyEnd) {
        last = part
        continue
      }
      hasEnded ||= head.length > 0
      head = []
      isTrigger = false
      continue
    }
    if (hasEnded) return true
    const word = part.toLowerCase()
    isBodyEnd = word === "end" && last === ";"
    last = word
    if (head.length < headWords) head = [...head, word]
    isTrigger ||= triggerForm.test(head.join(" "))
  }
  return false
}
