/** Pages of lists: cursors, and the rows that a page shows. */

/** Cursor of the first page where the newest version comes first: larger than every version. */
export const firstPageCursor = 2 ** 31 - 1

/** Makes a page from up to `limit + 1` rows; the extra row means that there is a next page. */
export const pageOf = <Row>(
  found: ReadonlyArray<Row>,
  limit: number,
  cursor: (last: Row) => string
): { readonly rows: ReadonlyArray<Row>; readonly nextCursor: string | null } => {
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  return { rows, nextCursor: found.length > limit && last !== undefined ? cursor(last) : null }
}
