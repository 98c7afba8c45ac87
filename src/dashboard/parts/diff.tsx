/** The difference of two texts, line by line. */

type Kind = "same" | "added" | "removed"

interface Line {
  readonly kind: Kind
  readonly text: string
}

/** Number of lines above which the table of the longest common subsequence takes too long. */
const linesMax = 3000

/** Lengths of the longest common subsequences of all suffixes. */
const suffixes = (before: ReadonlyArray<string>, after: ReadonlyArray<string>) => {
  const rows = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1))
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const [row, next] = [rows[i], rows[i + 1]]
      if (row === undefined || next === undefined) continue
      row[j] =
        before[i] === after[j] ? (next[j + 1] ?? 0) + 1 : Math.max(next[j] ?? 0, row[j + 1] ?? 0)
    }
  }
  return rows
}

/** The lines of both texts in order, each with where it is. */
export const diffLines = (before: string, after: string): ReadonlyArray<Line> => {
  const [old, fresh] = [before.split("\n"), after.split("\n")]
  if (old.length > linesMax || fresh.length > linesMax) {
    return [
      ...old.map((text) => ({ kind: "removed" as const, text })),
      ...fresh.map((text) => ({ kind: "added" as const, text }))
    ]
  }
  const common = suffixes(old, fresh)
  const lines: Array<Line> = []
  let [i, j] = [0, 0]
  while (i < old.length || j < fresh.length) {
    const [a, b] = [old[i], fresh[j]]
    if (a !== undefined && a === b) {
      lines.push({ kind: "same", text: a })
      i += 1
      j += 1
    } else if (b === undefined || (common[i + 1]?.[j] ?? -1) >= (common[i]?.[j + 1] ?? 0)) {
      lines.push({ kind: "removed", text: a ?? "" })
      i += 1
    } else {
      lines.push({ kind: "added", text: b })
      j += 1
    }
  }
  return lines
}

const signs = { same: " ", added: "+", removed: "-" } as const
const around = 3

/** Lines near a change. */
const near = (lines: ReadonlyArray<Line>): ReadonlyArray<Line> =>
  lines.filter((_, index) =>
    lines.slice(Math.max(0, index - around), index + around + 1).some(({ kind }) => kind !== "same")
  )

export const Diff = ({
  after,
  before,
  label
}: {
  readonly before: string
  readonly after: string
  readonly label: string
}) => (
  <div class="diff snippet" tabIndex={0} role="region" aria-label={label}>
    {near(diffLines(before, after)).map(({ kind, text }, index) => (
      <div key={index} class={kind}>
        {signs[kind]} {text}
      </div>
    ))}
  </div>
)
