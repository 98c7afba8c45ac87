/** The players of the room, and a counter that all of them share. */
import { StrictMode } from "react"
import { createRoot } from "react-dom/client"
import { useRoom } from "@player-backend/client/react"
import { enterRoom } from "./room.js"

const Game = ({ room }) => {
  const { me, players, state } = useRoom(room)
  const count = state.count ?? 0
  return (
    <main style={{ padding: 24 }}>
      <h1 id="status">Room {room.code}</h1>
      <ul>
        {players.map(({ connected, displayName, id }) => (
          <li key={id} style={{ opacity: connected ? 1 : 0.5 }}>
            {displayName} {id === me?.id ? "(you)" : ""}
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
