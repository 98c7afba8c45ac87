/** Draws Star rush on the canvas: the world around a ship, stars, ships and their trails. */
import { radius, world } from "./rules.js"

export const canvas = document.querySelector("canvas")
const context = canvas.getContext("2d")

/** Colors that differ for up to eight players, by the order of their seats. */
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
export const colorOf = (room, id) =>
  colors[room.players.findIndex((player) => player.id === id) % colors.length] ?? "#fff"

let view = { scale: 1, x: 0, y: 0 }

/** The place in the world below a pixel of the canvas. */
export const placeAt = ({ offsetX, offsetY }) => ({
  x: (offsetX - view.x) / view.scale,
  y: (offsetY - view.y) / view.scale
})

/** Where the camera is along one side: the whole world if it fits, else around the ship. */
const cameraOf = (at, worldSize, screenSize, scale) => {
  const shown = screenSize / scale
  return shown >= worldSize
    ? (worldSize - shown) / 2
    : Math.min(worldSize - shown, Math.max(0, at - shown / 2))
}

export const drawWorld = (ship) => {
  const ratio = devicePixelRatio
  canvas.width = innerWidth * ratio
  canvas.height = innerHeight * ratio
  const scale = Math.max(0.6, Math.min(innerWidth / world.width, innerHeight / world.height))
  const x = cameraOf(ship.x, world.width, innerWidth, scale)
  const y = cameraOf(ship.y, world.height, innerHeight, scale)
  view = { scale, x: -x * scale, y: -y * scale }
  context.setTransform(scale * ratio, 0, 0, scale * ratio, view.x * ratio, view.y * ratio)
  context.fillStyle = "#111a35"
  context.fillRect(0, 0, world.width, world.height)
  context.strokeStyle = "#1f2b52"
  context.lineWidth = 2
  context.beginPath()
  for (let line = 0; line <= world.width; line += 100) {
    context.moveTo(line, 0)
    context.lineTo(line, world.height)
  }
  for (let line = 0; line <= world.height; line += 100) {
    context.moveTo(0, line)
    context.lineTo(world.width, line)
  }
  context.stroke()
}

export const drawStar = ({ x, y }, time) => {
  context.beginPath()
  for (let n = 0; n < 10; n += 1) {
    const length = n % 2 === 0 ? 24 : 11
    const angle = (n * Math.PI) / 5 + time / 1500
    context.lineTo(x + Math.sin(angle) * length, y - Math.cos(angle) * length)
  }
  context.closePath()
  context.shadowColor = context.fillStyle = "#ffd166"
  context.shadowBlur = 30
  context.fill()
  context.shadowBlur = 0
}

/** The last places of each ship, which fade behind it. */
const trails = new Map()

export const drawShip = ({ x, y }, color, { connected, displayName, id }) => {
  const trail = trails.get(id) ?? []
  trails.set(id, [...trail, { x, y }].slice(-24))
  context.fillStyle = color
  trail.forEach((at, n) => {
    context.globalAlpha = (n / trail.length) * 0.25
    context.beginPath()
    context.arc(at.x, at.y, (radius * n) / trail.length, 0, Math.PI * 2)
    context.fill()
  })
  context.globalAlpha = connected ? 1 : 0.35
  context.beginPath()
  context.arc(x, y, radius, 0, Math.PI * 2)
  context.fill()
  context.fillStyle = "#fff"
  context.font = "600 22px system-ui"
  context.textAlign = "center"
  context.fillText(displayName, x, y - radius - 12)
  context.globalAlpha = 1
}
