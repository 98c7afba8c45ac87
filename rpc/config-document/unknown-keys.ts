/** Messages for keys that a section of the config does not know, with the name that was probably meant. */
import { editDistance } from "../edit-distance.ts"
import type { Issue } from "../errors/codes.ts"

/** The message without a suggestion; {@link withSuggestion} reads the known names from it. */
export const unknownKeyMessage = (noun: string, known: ReadonlyArray<string>): string =>
  `unknown ${noun}: remove it, or use one of ${known.join(", ")}`

const messageForm = /^unknown (\w+): remove it, or use one of (.+)$/
const lastKey = /([A-Za-z_$][\w$]*)(?:"\])?$/

/**
 * Length above which a name is not compared: it is no typing error, and the comparison would take
 * time.
 */
const longestName = 64
/** Maximum edit distance of a suggested name. It must also be less than half of the letters. */
const mostSteps = 3

/** Replaces the list of known names by the closest one, if one is close. */
export const withSuggestion = ({ message, path }: Issue): Issue => {
  const [, noun, known] = messageForm.exec(message) ?? []
  const [, name = ""] = lastKey.exec(path) ?? []
  if (known === undefined || name === "" || name.length > longestName) return { path, message }
  const ranked = known
    .split(", ")
    .map((word) => ({ word, steps: editDistance(name, word) }))
    .toSorted((a, b) => a.steps - b.steps)
  const [best] = ranked
  return best !== undefined && best.steps <= mostSteps && best.steps * 2 < best.word.length
    ? { path, message: `unknown ${noun}; did you mean "${best.word}"?` }
    : { path, message }
}
