/** The rules of four in a row: pure functions of the board, 42 characters of which each is "r", "y" or ".". */

export const columns = 7
const rows = 6
export const emptyBoard = ".".repeat(columns * rows)

const at = (board, column, row) =>
  column < 0 || column >= columns || row < 0 || row >= rows
    ? undefined
    : board[row * columns + column]

/** The board after a disc falls into a column, and where it lies; undefined if the column is full. */
export const drop = (board, column, disc) => {
  for (let row = rows - 1; row >= 0; row -= 1) {
    if (at(board, column, row) !== ".") continue
    const index = row * columns + column
    return { board: board.slice(0, index) + disc + board.slice(index + 1), index }
  }
  return undefined
}

/** The cells of a line of four discs; undefined without one. */
export const lineOf = (board) => {
  for (let cell = 0; cell < board.length; cell += 1) {
    const [column, row] = [cell % columns, Math.floor(cell / columns)]
    if (board[cell] === ".") continue
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
      [1, 1],
      [1, -1]
    ]) {
      const line = [0, 1, 2, 3].map((n) => [column + dx * n, row + dy * n])
      if (line.every(([x, y]) => at(board, x, y) === board[cell]))
        return line.map(([x, y]) => y * columns + x)
    }
  }
  return undefined
}

export const isFull = (board) => !board.includes(".")

/** What the computer plays: it wins, it prevents a loss, or it plays near the middle. */
export const computerMove = (board) => {
  const open = [3, 2, 4, 1, 5, 0, 6].filter((column) => drop(board, column, "y") !== undefined)
  const wins = (disc) =>
    open.find((column) => lineOf(drop(board, column, disc).board) !== undefined)
  return wins("y") ?? wins("r") ?? open[Math.floor(Math.random() ** 2 * open.length)]
}
