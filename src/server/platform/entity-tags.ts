/** Entity tags of HTTP: `ETag`, `If-Match` and `If-None-Match`. */

/** Whether a list of entity tags names this one, as a weak tag or by `*`, too. */
export const matchesTag = (header: string, tag: string): boolean =>
  header === tag ||
  header.split(",").some((listed) => {
    const bare = listed.trim().replace(/^W\//, "")
    return bare === "*" || bare === tag
  })
