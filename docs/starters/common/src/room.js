/** Signs the player in and enters a room. The same code runs beside `svc dev` and when the service hosts the game. */
import { createClient } from "@player-backend/client"

const { baseUrl, publishableKey } = import.meta.env.DEV
  ? { baseUrl: import.meta.env.VITE_SVC_URL, publishableKey: import.meta.env.VITE_SVC_KEY }
  : await (await fetch("/.well-known/svc.json")).json()

/** Every tab is a player of its own, so that you can play against yourself. For real players: leave `storage` out. */
const storage = {
  getItem: (name) => sessionStorage.getItem(window.name + name),
  setItem: (name, value) => sessionStorage.setItem(window.name + name, value),
  removeItem: (name) => sessionStorage.removeItem(window.name + name)
}

export const client = createClient({ baseUrl, key: publishableKey, storage })

/** Returns to the room of this tab after a reload, or finds a room with a free seat. */
export const enterRoom = async () => {
  await client.sessions.ensure()
  return (await client.rooms.resume()) ?? (await client.rooms.quickMatch("arena"))
}
