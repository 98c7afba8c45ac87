/** JSON as somebody may write it: members that come twice, and literals that are none. */

/** Text that stands in the JSON as it is. */
export class Literal {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An object by its members, in their order; a name may come more than once. */
export class Members {
  readonly entries: Array<[name: string, value: Json]> = []
}

export type Json = string | number | boolean | null | Literal | Members | ReadonlyArray<Json>

const isList = (json: Json): json is ReadonlyArray<Json> => Array.isArray(json)

export const write = (json: Json): string => {
  if (json instanceof Literal) return json.text
  if (isList(json)) return `[${json.map(write).join(",")}]`
  if (json instanceof Members) {
    const members = json.entries.map(([name, value]) => `${JSON.stringify(name)}:${write(value)}`)
    return `{${members.join(",")}}`
  }
  return JSON.stringify(json)
}

/** An object in the order of its members. */
export const members = (record: Readonly<Record<string, Json>>): Members => {
  const made = new Members()
  made.entries.push(...Object.entries(record))
  return made
}
