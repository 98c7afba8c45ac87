/** JSON paths as the interface writes them: `multiplayer.modes[0].maxPlayers`, `title["pt-BR"]`. */

/** The path of a member of what stands at `path`; the document itself is at "". */
export const memberPath = (path: string, key: PropertyKey): string => {
  if (typeof key === "number") return `${path}[${key}]`
  const name = String(key)
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === "" ? name : `${path}.${name}`
}

/** The path of a list of keys, from the document down. */
export const jsonPath = (keys: ReadonlyArray<PropertyKey>): string =>
  keys.reduce<string>(memberPath, "")
