/** `room.peers`: the mesh of a peer-to-peer room, whose code is loaded when a game connects it. */
import type { Core } from "./core.ts"
import type { MeshRoom, PeerMesh } from "./peer-mesh.ts"
import type { RoomPeers } from "./room.ts"

export const peersOf = (room: MeshRoom, core: Core): RoomPeers => {
  let mesh: PeerMesh | undefined
  let connecting: Promise<void> | undefined
  const close = () => {
    mesh?.close()
    mesh = connecting = undefined
  }
  return {
    connect: (options) =>
      (connecting ??= import("./peer-mesh.ts")
        .then((module) => {
          mesh = new module.PeerMesh(room, core, options)
          return mesh.start()
        })
        .catch((error: unknown) => {
          close()
          throw error
        })),
    send: (type, data, options) =>
      mesh === undefined ? room.send(type, data, options) : mesh.send(type, data, options),
    route: (playerId) => mesh?.route(playerId) ?? "server",
    close
  }
}
