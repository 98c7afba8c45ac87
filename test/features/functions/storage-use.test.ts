/** Decisions about the storage of an environment, and the count of its bytes. */
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { storedBytes, writtenBytes } from "#server/features/functions/host/stored-bytes"
import { isDue, nextState, storageLimitsOf } from "#server/features/functions/host/storage-use"

const mebibyte = 1024 * 1024
const limits = storageLimitsOf(100 * mebibyte)
const found = (megabytes: number) => ({
  bytes: megabytes * mebibyte,
  isDiskLow: false,
  bytesWhenLow: Infinity
})

describe("the storage of an environment", () => {
  it("calls storage full beyond the limit, and stops code beyond the ceiling until it is below the limit", () => {
    assert.strictEqual(nextState("free", limits, found(100)), "free")
    assert.strictEqual(nextState("free", limits, found(101)), "full")
    assert.strictEqual(nextState("full", limits, found(126)), "over")
    assert.strictEqual(nextState("over", limits, found(101)), "over")
    assert.strictEqual(nextState("over", limits, found(100)), "free")
    assert.strictEqual(nextState("full", limits, found(101)), "full")
  })

  it("puts the ceiling of storage some room above a small limit, and has none without a limit", () => {
    assert.strictEqual(storageLimitsOf(mebibyte).ceilingBytes, 17 * mebibyte)
    assert.strictEqual(nextState("free", storageLimitsOf(0), found(1e6)), "free")
  })

  it("calls storage full while the disk is low, and stops code that adds to it all the same", () => {
    const low = { ...found(10), isDiskLow: true, bytesWhenLow: 10 * mebibyte }
    assert.strictEqual(nextState("free", limits, low), "full")
    assert.strictEqual(nextState("full", limits, { ...low, bytes: 30 * mebibyte }), "over")
    assert.strictEqual(nextState("over", limits, { ...low, bytes: 20 * mebibyte }), "over")
    assert.strictEqual(nextState("over", limits, found(20)), "free")
    assert.strictEqual(nextState("free", storageLimitsOf(0), low), "full")
  })

  it("measures storage at once when much was written, and rests after a long measurement", () => {
    const waited = { sinceMillis: 300, tookMillis: 10, written: 0, roomBytes: 4 * mebibyte }
    assert.isFalse(isDue(waited))
    assert.isTrue(isDue({ ...waited, written: 3 * mebibyte }))
    assert.isFalse(isDue({ ...waited, written: 3 * mebibyte, tookMillis: 1000 }))
    assert.isFalse(isDue({ ...waited, written: 3 * mebibyte, sinceMillis: 100 }))
    assert.isTrue(isDue({ ...waited, sinceMillis: 5000 }))
    assert.isTrue(isDue({ ...waited, written: undefined, sinceMillis: 1000 }))
  })
})

describe("the bytes of an environment", () => {
  const root = mkdtempSync(join(tmpdir(), "bytes-"))
  afterAll(() => rmSync(root, { recursive: true }))
  const folderOf = (name: string): string => {
    mkdirSync(join(root, name))
    return join(root, name)
  }

  it("counts files without content, of which a disk has few", async () => {
    const folder = folderOf("empty")
    for (let file = 0; file < 100; file += 1) writeFileSync(join(folder, `${file}`), "")
    assert.isAtLeast(await storedBytes("find", folder, undefined, Infinity), 100 * 4096)
  })

  it("counts files that a process holds open without a name", async () => {
    const folder = folderOf("held")
    const file = join(folder, "file")
    const descriptor = openSync(file, "w")
    writeSync(descriptor, Buffer.alloc(mebibyte, 1))
    rmSync(file)
    assert.isAtLeast(await storedBytes("find", folder, process.pid, Infinity), mebibyte)
    closeSync(descriptor)
    assert.isBelow(await storedBytes("find", folder, process.pid, Infinity), mebibyte)
  })

  it("reads the bytes that a process has written", () => {
    const before = writtenBytes(process.pid) ?? 0
    writeFileSync(join(folderOf("written"), "file"), Buffer.alloc(mebibyte))
    assert.isAtLeast((writtenBytes(process.pid) ?? 0) - before, mebibyte)
  })
})
