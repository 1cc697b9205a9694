/** The subjects of the sample services, as data: domains, and the kinds of records that each of them keeps.
 *  Invariant: names are words that TypeScript, git and Markdown accept unchanged; every resource has a text field as its
 *  title and a number field that can be added up.
 *  Elsewhere: which domain a seed picks (sample.ts), the files generated from it (sample-code.ts, sample-edges.ts). */

export type FieldKind = "text" | "count" | "cents" | "moment" | "flag";

export type Field = { readonly name: string; readonly kind: FieldKind; readonly about: string };

export type Resource = {
  readonly one: string;
  readonly many: string;
  readonly about: string;
  /** The field that names it. */
  readonly title: Field;
  /** The field that is added up over all of them. */
  readonly figure: Field;
  readonly more: readonly Field[];
};

export type Domain = { readonly service: string; readonly about: string; readonly resources: readonly Resource[] };

const field = (kind: FieldKind, name: string, about: string): Field => ({ name, kind, about });

/** `["berth", "berths"], "a place …"`, then its title, its figure and its other fields. */
const resource = (
  names: readonly [one: string, many: string],
  about: string,
  [title, figure, ...more]: readonly [Field, Field, ...Field[]],
): Resource => ({ one: names[0], many: names[1], about, title, figure, more });

const harbour: Domain = {
  service: "harbour-office",
  about: "the books of a small harbour: who lies where, for how long, and what they owe",
  resources: [
    resource(["berth", "berths"], "a place where one vessel can lie", [
      field("text", "label", "as it is painted on the quay"),
      field("count", "metres", "the longest vessel that fits"),
      field("flag", "hasPower", "whether there is a socket"),
    ]),
    resource(["vessel", "vessels"], "a boat that has been here at least once", [
      field("text", "name", "as it stands on the bow"),
      field("count", "tonnes", "displacement, from its papers"),
      field("moment", "surveyedAt", "when its hull was last looked at"),
    ]),
    resource(["skipper", "skippers"], "a person who answers for a vessel", [
      field("text", "fullName", "as on the licence"),
      field("count", "nights", "spent here in all"),
      field("text", "phone", "for the night watch"),
    ]),
    resource(["invoice", "invoices"], "what a skipper owes for a stay", [
      field("text", "number", "printed on the paper, never reused"),
      field("cents", "amount", "with tax"),
      field("moment", "dueAt", "the last day without a reminder"),
      field("flag", "isPaid", "set by the bank import alone"),
    ]),
    resource(["tariff", "tariffs"], "a price for a metre and a night", [
      field("text", "season", "as the notice board says it"),
      field("cents", "perMetre", "before tax"),
      field("moment", "validFrom", "at noon, when berths change hands"),
    ]),
    resource(["lift", "lifts"], "a time slot on the crane", [
      field("text", "purpose", "in or out of the water"),
      field("count", "minutes", "booked, with rigging"),
      field("moment", "beginsAt", "on the quarter of an hour"),
    ]),
    resource(["permit", "permits"], "leave to work on the quay", [
      field("text", "trade", "welding, painting, diving"),
      field("count", "days", "it holds"),
      field("flag", "isHot", "whether there may be sparks"),
    ]),
    resource(["notice", "notices"], "a message to everybody who lies here", [
      field("text", "headline", "at most one line"),
      field("count", "readers", "who have opened it"),
      field("moment", "postedAt", "when it went up"),
    ]),
  ],
};

const library: Domain = {
  service: "branch-library",
  about: "the desk of a branch library: what is lent, to whom, and when it comes back",
  resources: [
    resource(["loan", "loans"], "a copy in somebody's hands", [
      field("text", "barcode", "of the copy"),
      field("count", "renewals", "so far"),
      field("moment", "dueAt", "closing time of that day"),
    ]),
    resource(["reader", "readers"], "a person with a card", [
      field("text", "cardName", "as printed on the card"),
      field("count", "openLoans", "at this moment"),
      field("flag", "isBlocked", "set when a fee is older than a month"),
    ]),
    resource(["edition", "editions"], "a book as it was published", [
      field("text", "headTitle", "without the subtitle"),
      field("count", "pages", "numbered ones"),
      field("text", "shelfMark", "where it stands"),
    ]),
    resource(["branch", "branches"], "a house with a desk", [
      field("text", "street", "with the number"),
      field("count", "seats", "for readers"),
      field("flag", "hasLift", "whether all floors can be reached"),
    ]),
    resource(["fee", "fees"], "money for a late or damaged copy", [
      field("text", "reason", "one of the reasons on the notice"),
      field("cents", "amount", "as the table of fees says"),
      field("moment", "raisedAt", "when it was put on the card"),
    ]),
    resource(["wish", "wishes"], "a copy that is out and somebody waits for", [
      field("text", "wanted", "the title as the reader said it"),
      field("count", "place", "in the queue, from one"),
      field("moment", "askedAt", "when it was written down"),
    ]),
    resource(["talk", "talks"], "a reading or a course in the house", [
      field("text", "topic", "as on the poster"),
      field("count", "chairs", "put out"),
      field("flag", "isFree", "whether there is no ticket"),
    ]),
    resource(["parcel", "parcels"], "a box that goes between branches", [
      field("text", "route", "from where to where"),
      field("count", "items", "in the box"),
      field("moment", "sentAt", "when the van left"),
    ]),
  ],
};

const greenhouse: Domain = {
  service: "glasshouse",
  about: "the day book of a glasshouse: what grows where, what it needs, and what is sold of it",
  resources: [
    resource(["bed", "beds"], "a piece of ground under glass", [
      field("text", "corner", "as the plan on the door names it"),
      field("count", "metres", "of its longer side"),
      field("flag", "isHeated", "whether pipes run below"),
    ]),
    resource(["crop", "crops"], "what was sown together", [
      field("text", "variety", "as on the packet"),
      field("count", "plants", "after thinning"),
      field("moment", "sownAt", "the day of the first row"),
    ]),
    resource(["sensor", "sensors"], "a thing that measures", [
      field("text", "model", "from its label"),
      field("count", "metresUp", "above the ground"),
      field("flag", "isTrusted", "checked against the mercury this year"),
    ]),
    resource(["valve", "valves"], "a tap that opens by itself", [
      field("text", "line", "the pipe it sits on"),
      field("count", "litres", "an hour when open"),
      field("moment", "servicedAt", "when its seal was changed"),
    ]),
    resource(["crate", "crates"], "a box of produce, ready to go", [
      field("text", "content", "what lies on top"),
      field("count", "grams", "without the box"),
      field("moment", "packedAt", "when the lid was put on"),
    ]),
    resource(["buyer", "buyers"], "a shop or a kitchen that buys here", [
      field("text", "house", "as on the delivery note"),
      field("cents", "credit", "they may run up"),
      field("flag", "collects", "whether they come with their own van"),
    ]),
    resource(["sale", "sales"], "crates that went to a buyer", [
      field("text", "note", "the number of the delivery note"),
      field("cents", "amount", "before the discount"),
      field("moment", "soldAt", "when the note was signed"),
    ]),
    resource(["chore", "chores"], "work for tomorrow", [
      field("text", "wording", "in the imperative"),
      field("count", "minutes", "it took the last time"),
      field("flag", "isUrgent", "whether it cannot wait for Monday"),
    ]),
  ],
};

export const DOMAINS: readonly [Domain, ...(readonly Domain[])] = [harbour, library, greenhouse];
