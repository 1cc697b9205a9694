/** Append-only bytes, shared by everyone who has seen them.
 *  Invariant: a rope never changes. The newest rope of a tape appends in place; appending to an older one branches, and
 *  the branch points to the bytes before it instead of copying them.
 *  Elsewhere: what the bytes mean (prefix.ts). */

type Room = { readonly start: number; readonly buffer: Buffer; used: number; view: Buffer | undefined };

/** For a branch: most forks add little. */
const FIRST_ROOM = 1024;
/** For a conversation, which begins with tools and a system prompt and keeps growing: each room is a piece of every
 *  later request, and a room that is not written to yet takes no memory. */
const FIRST_ROOM_OF_ALL = 256 * 1024;
/** Shorter pieces are copied together, because sending a piece by itself costs more than copying it. */
const COPIED_BYTES = 128;
/** Each abandoned branch leaves one more piece. Past this many they are copied into one, so that a request stays
 *  short. */
const MOST_PIECES = 64;

/** Append-only storage. Rooms double in size, so n bytes are in O(log n) rooms, and one append never straddles two of
 *  them. */
class Tape {
  readonly rooms: Room[] = [];
  readonly #firstRoom: number;
  end: number;

  constructor(start: number) {
    this.#firstRoom = start === 0 ? FIRST_ROOM_OF_ALL : FIRST_ROOM;
    this.end = start;
  }

  write(text: string): Buffer {
    const size = Buffer.byteLength(text);
    const room = this.#roomFor(size);
    room.buffer.write(text, room.used);
    return this.#take(room, size);
  }

  copy(bytes: Buffer): Buffer {
    const room = this.#roomFor(bytes.length);
    bytes.copy(room.buffer, room.used);
    return this.#take(room, bytes.length);
  }

  /** Searches from the end, because most lookups are for what has just been written. */
  roomAt(offset: number): Room | undefined {
    return this.rooms.findLast(({ start }) => start <= offset);
  }

  #take(room: Room, size: number): Buffer {
    const written = room.buffer.subarray(room.used, room.used + size);
    room.used += size;
    this.end += size;
    return written;
  }

  #roomFor(size: number): Room {
    const last = this.rooms.at(-1);
    if (last && last.buffer.length - last.used >= size) return last;
    if (last) last.view = last.buffer.subarray(0, last.used);
    const capacity = Math.max(size, last ? last.buffer.length * 2 : this.#firstRoom);
    const room: Room = { start: this.end, buffer: Buffer.allocUnsafeSlow(capacity), used: 0, view: undefined };
    this.rooms.push(room);
    return room;
  }
}

export type Insertion = { readonly offset: number; readonly text: string };

export class Rope {
  readonly length: number;
  readonly #base: readonly Buffer[];
  readonly #tape: Tape;

  private constructor(base: readonly Buffer[], tape: Tape, length: number) {
    this.#base = base;
    this.#tape = tape;
    this.length = length;
  }

  static empty(): Rope {
    return new Rope([], new Tape(0), 0);
  }

  /** The grown rope, and the bytes just written (a view, not a copy). */
  append(added: string | Buffer): readonly [Rope, Buffer] {
    const [base, tape] = this.#tape.end === this.length ? [this.#base, this.#tape] : this.#branch();
    const written = typeof added === "string" ? tape.write(added) : tape.copy(added);
    return [new Rope(base, tape, this.length + written.length), written];
  }

  /** The pieces in order; no piece is a copy. */
  pieces(): readonly Buffer[] {
    const pieces = [...this.#base];
    for (const room of this.#tape.rooms) {
      if (room.start >= this.length) break;
      const size = Math.min(room.used, this.length - room.start);
      if (size > 0) pieces.push(room.view?.length === size ? room.view : room.buffer.subarray(0, size));
    }
    return pieces;
  }

  slice(start: number, end: number): Buffer {
    const room = this.#tape.roomAt(start);
    if (room && end <= room.start + room.used) return room.buffer.subarray(start - room.start, end - room.start);
    const parts: Buffer[] = [];
    let at = 0;
    for (const piece of this.pieces()) {
      if (at < end && at + piece.length > start) parts.push(piece.subarray(Math.max(0, start - at), end - at));
      at += piece.length;
    }
    return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  }

  /** The pieces with texts inserted at ascending offsets, cut only there, and `ending` after them. */
  spliced(insertions: readonly Insertion[], ending = ""): readonly Buffer[] {
    const out: Buffer[] = [];
    for (const cut of this.#cut(insertions, ending)) {
      const last = out.at(-1);
      if (last && cut.length <= COPIED_BYTES && last.length <= COPIED_BYTES)
        out[out.length - 1] = Buffer.concat([last, cut]);
      else out.push(cut);
    }
    return out;
  }

  #cut(insertions: readonly Insertion[], ending: string): readonly Buffer[] {
    const out: Buffer[] = [];
    let next = 0;
    let at = 0;
    for (const piece of this.pieces()) {
      const end = at + piece.length;
      let from = at;
      for (let cut = insertions[next]; cut && cut.offset < end; cut = insertions[next]) {
        if (cut.offset > from) out.push(piece.subarray(from - at, cut.offset - at));
        out.push(Buffer.from(cut.text));
        from = cut.offset;
        next += 1;
      }
      out.push(from === at ? piece : piece.subarray(from - at));
      at = end;
    }
    for (const cut of insertions.slice(next)) out.push(Buffer.from(cut.text));
    if (ending !== "") out.push(Buffer.from(ending));
    return out;
  }

  #branch(): readonly [readonly Buffer[], Tape] {
    const pieces = this.pieces();
    const base = pieces.length > MOST_PIECES ? [Buffer.concat(pieces)] : pieces;
    return [base, new Tape(this.length)];
  }
}
