/** The players of the room, and a counter that all of them share. */
import { StrictMode, useEffect, useState } from "react"
import { createRoot } from "react-dom/client"
import { enterRoom } from "./room.js"

/** The room as a value that React draws: it changes with each change of the room. */
const useRoom = (room) => {
  const [view, setView] = useState(room.snapshot)
  useEffect(() => room.on("change", () => setView(room.snapshot)), [room])
  return view
}

const Game = ({ room }) => {
  const { players, state } = useRoom(room)
  const count = state.count ?? 0
  return (
    <main style={{ padding: 24 }}>
      <h1 id="status">Room {room.code}</h1>
      <ul>
        {players.map(({ connected, displayName, id }) => (
          <li key={id} style={{ opacity: connected ? 1 : 0.5 }}>
            {displayName} {id === room.me?.id ? "(you)" : ""}
          </li>
        ))}
      </ul>
      <button onClick={() => room.setState({ count: count + 1 })}>Count: {count}</button>
    </main>
  )
}

const room = await enterRoom()
createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <Game room={room} />
  </StrictMode>
)
