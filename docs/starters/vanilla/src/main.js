/** Every player is a dot that follows the pointer. */
import { enterRoom } from "./room.js"

const canvas = document.querySelector("canvas")
const context = canvas.getContext("2d")
const status = document.querySelector("#status")
const colors = [
  "#4cc9f0",
  "#f72585",
  "#80ed99",
  "#ffb703",
  "#b8a1ff",
  "#ff7b54",
  "#e0fbfc",
  "#f15bb5"
]

const room = await enterRoom()

/** Where each player is, as parts of the page's width and height. */
const places = new Map()
const me = { x: 0.1 + Math.random() * 0.8, y: 0.1 + Math.random() * 0.8 }

room.onMessage("at", ({ data, from }) => places.set(from, data))
addEventListener("pointermove", ({ clientX, clientY }) => {
  me.x = clientX / innerWidth
  me.y = clientY / innerHeight
})
// 20 messages a second are smooth enough for this.
setInterval(() => room.send("at", me), 50)

const show = () => {
  status.textContent = `Room ${room.code}: ${room.players.map(({ displayName }) => displayName).join(", ")}`
}
room.on("change", show)
show()

const draw = () => {
  // As many pixels as the screen has: those of a phone are smaller.
  canvas.width = innerWidth * devicePixelRatio
  canvas.height = innerHeight * devicePixelRatio
  context.scale(devicePixelRatio, devicePixelRatio)
  context.font = "14px system-ui, sans-serif"
  room.players.forEach(({ displayName, id }, seat) => {
    const at = id === room.me?.id ? me : places.get(id)
    if (at === undefined) return
    context.fillStyle = colors[seat % colors.length]
    context.beginPath()
    context.arc(at.x * innerWidth, at.y * innerHeight, 20, 0, Math.PI * 2)
    context.fill()
    context.fillText(displayName, at.x * innerWidth + 26, at.y * innerHeight + 4)
  })
  requestAnimationFrame(draw)
}
draw()
