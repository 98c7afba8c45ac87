/** JSON values that `JSON.stringify` cannot produce: duplicate members and invalid literals. */

/** Text that is copied into the JSON unchanged. */
export class RawJson {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** An object as a list of members; names may repeat. */
export class JsonObject {
  readonly entries: Array<[name: string, value: Json]> = []
}

export type Json = string | number | boolean | null | RawJson | JsonObject | ReadonlyArray<Json>

const isList = (json: Json): json is ReadonlyArray<Json> => Array.isArray(json)

export const stringify = (json: Json): string => {
  if (json instanceof RawJson) return json.text
  if (isList(json)) return `[${json.map(stringify).join(",")}]`
  if (json instanceof JsonObject) {
    const jsonObject = json.entries.map(
      ([name, value]) => `${JSON.stringify(name)}:${stringify(value)}`
    )
    return `{${jsonObject.join(",")}}`
  }
  return JSON.stringify(json)
}

/** An object with the members of a record. */
export const members = (record: Readonly<Record<string, Json>>): JsonObject => {
  const made = new JsonObject()
  made.entries.push(...Object.entries(record))
  return made
}
