/** Every player is a ship: arrow keys turn and push it, or it follows a finger. */
import Phaser from "phaser"
import { enterRoom } from "./room.js"

const colors = [0x4cc9f0, 0xf72585, 0x80ed99, 0xffb703, 0xb8a1ff, 0xff7b54, 0xe0fbfc, 0xf15bb5]
const sendMillis = 50

const room = await enterRoom()

/** The player's start and color: the lowest number that nobody else has. It is in the state of the player. */
const takeSlot = () => {
  const { id, state } = room.me
  if (state.slot !== undefined) return
  const taken = room.players.map((player) => player.state.slot)
  const free = colors.map((_, slot) => slot).filter((slot) => !taken.includes(slot))
  // Who has come before this player and has no number yet takes one first.
  const seat = room.players.findIndex((player) => player.id === id)
  const choosing = taken.slice(0, seat).filter((slot) => slot === undefined)
  room.setMyState({ slot: free[choosing.length] ?? 0 })
}

/** Eighths of an ellipse, so that the first players start as far apart as they can. */
const starts = [0, 4, 2, 6, 1, 5, 3, 7]

const startOf = (slot) => {
  const angle = (starts[slot] * Math.PI) / 4
  return { x: 400 + 280 * Math.cos(angle), y: 300 + 200 * Math.sin(angle), angle: angle + Math.PI }
}

class Arena extends Phaser.Scene {
  ships = new Map()

  create() {
    this.keys = this.input.keyboard.createCursorKeys()
    room.onMessage("at", ({ data, from }) =>
      this.ships.get(from)?.setPosition(data.x, data.y).setRotation(data.angle)
    )
    room.on("change", () => this.seat())
    takeSlot()
    this.seat()
    this.time.addEvent({ delay: sendMillis, loop: true, callback: () => this.report() })
  }

  /** One ship for each player of the room, once its slot is known. */
  seat() {
    const ids = new Set(room.players.map(({ id }) => id))
    for (const { id, state } of room.players) {
      if (this.ships.has(id) || state.slot === undefined) continue
      const { angle, x, y } = startOf(state.slot)
      const ship = this.add.triangle(x, y, 0, 0, 0, 30, 40, 15, colors[state.slot])
      ship.setRotation(angle)
      this.ships.set(id, ship)
      if (id === room.me?.id) {
        this.physics.add.existing(ship)
        ship.body.setCollideWorldBounds(true).setDrag(120).setMaxVelocity(360)
      }
    }
    for (const [id, ship] of this.ships) {
      if (ids.has(id)) continue
      ship.destroy()
      this.ships.delete(id)
    }
    document.querySelector("#status").textContent =
      `Room ${room.code}: ${room.players.map(({ displayName }) => displayName).join(", ")}`
  }

  report() {
    const ship = this.ships.get(room.me?.id)
    if (ship !== undefined) room.send("at", { x: ship.x, y: ship.y, angle: ship.rotation })
  }

  update() {
    const ship = this.ships.get(room.me?.id)
    if (ship === undefined) return
    const { left, right, up } = this.keys
    ship.body.setAngularVelocity(left.isDown ? -220 : right.isDown ? 220 : 0)
    const { isDown, x, y } = this.input.activePointer
    if (isDown) {
      const goal = Phaser.Math.Angle.Between(ship.x, ship.y, x, y)
      ship.setRotation(Phaser.Math.Angle.RotateTo(ship.rotation, goal, 0.08))
    }
    if (up.isDown || isDown)
      this.physics.velocityFromRotation(ship.rotation, 500, ship.body.acceleration)
    else ship.body.setAcceleration(0)
  }
}

export const game = new Phaser.Game({
  width: 800,
  height: 600,
  backgroundColor: "#111a35",
  scale: { mode: Phaser.Scale.FIT, autoCenter: Phaser.Scale.CENTER_BOTH },
  physics: { default: "arcade" },
  scene: Arena
})
