/** Every player is a ship: arrow keys turn and push it. */
import Phaser from "phaser"
import { enterRoom } from "./room.js"

const colors = [0x4cc9f0, 0xf72585, 0x80ed99, 0xffb703, 0xb8a1ff, 0xff7b54, 0xe0fbfc, 0xf15bb5]
const sendMillis = 50

const room = await enterRoom()

class Arena extends Phaser.Scene {
  ships = new Map()

  create() {
    this.keys = this.input.keyboard.createCursorKeys()
    room.on("message", ({ data, from, type }) => {
      if (type === "at") this.ships.get(from)?.setPosition(data.x, data.y).setRotation(data.angle)
    })
    room.on("change", () => this.seat())
    this.seat()
    this.time.addEvent({ delay: sendMillis, loop: true, callback: () => this.report() })
  }

  /** One ship for each player of the room. */
  seat() {
    const ids = new Set(room.players.map(({ id }) => id))
    room.players.forEach(({ id }, seat) => {
      if (this.ships.has(id)) return
      const ship = this.add.triangle(400, 300, 0, 0, 0, 30, 40, 15, colors[seat % colors.length])
      this.ships.set(id, ship)
      if (id === room.me?.id) {
        this.physics.add.existing(ship)
        ship.body.setCollideWorldBounds(true).setDrag(120).setMaxVelocity(360)
      }
    })
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
    if (up.isDown) this.physics.velocityFromRotation(ship.rotation, 500, ship.body.acceleration)
    else ship.body.setAcceleration(0)
  }
}

export const game = new Phaser.Game({
  width: 800,
  height: 600,
  scale: { mode: Phaser.Scale.FIT, autoCenter: Phaser.Scale.CENTER_BOTH },
  physics: { default: "arcade" },
  scene: Arena
})
