/** JSON paths in error details: `multiplayer.modes[0].maxPlayers`, `title["pt-BR"]`. */

/** Appends a key to a path; the root has the path "". */
export const memberPath = (path: string, key: PropertyKey): string => {
  if (typeof key === "number") return `${path}[${key}]`
  const name = String(key)
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) return `${path}[${JSON.stringify(name)}]`
  return path === "" ? name : `${path}.${name}`
}

/** Joins keys from the root downwards to a path. */
export const jsonPath = (keys: ReadonlyArray<PropertyKey>): string =>
  keys.reduce<string>(memberPath, "")
