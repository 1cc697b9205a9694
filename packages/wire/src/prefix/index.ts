/** The frozen bytes of a conversation and the places where cache markers go into them. */

export {
  type FamilyMarkerOptions,
  familyMarkers,
  LOOK_BACK,
  lastMarkable,
  type Marker,
  type MarkerOptions,
  type MarkerPlace,
  type MarkerRole,
  markerPlaces,
  markersAt,
  type NextMarkerOptions,
  nextMarkers,
} from "./markers.ts";
export { FORK_PLACEHOLDER_RESULT, placeholderFor, withUniqueIds } from "./pairing.ts";
export type { OpenTail } from "./prefix.ts";
export {
  type Divergence,
  type EncodedSegment,
  FrozenPrefix,
  type MarkerSite,
  type PrefixEnd,
  type PrefixOrigin,
  type Segment,
  type SegmentEncoder,
  type SegmentKind,
  type SentBlocks,
} from "./prefix.ts";
export type { Insertion } from "./rope.ts";
