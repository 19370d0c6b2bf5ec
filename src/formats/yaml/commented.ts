/** YAML for people to continue: a document with comments at the items of one of its lists. */
import { Document, isMap, isSeq } from 'yaml';

/** Comments of an item: lines before it, and after its fields. */
export interface Comments {
  readonly before: string;
  readonly after: string;
}

/** Each comment may have several lines. An item that is no map gets none. `first`: the comment before everything. */
export function commentedYaml(
  value: unknown,
  {
    path,
    comments,
    first,
  }: { readonly path: readonly string[]; readonly comments: readonly Comments[]; readonly first?: string | undefined },
): string {
  const document = new Document(value);
  if (first !== undefined) document.commentBefore = spaced(first);
  const list = document.getIn(path);
  for (const [at, item] of isSeq(list) ? list.items.entries() : []) {
    const { before, after } = comments[at] ?? {};
    if (!isMap(item) || before === undefined || after === undefined) continue;
    item.commentBefore = spaced(before);
    item.comment = spaced(after);
  }
  return document.toString({ lineWidth: 0 });
}

function spaced(text: string): string {
  return text.replaceAll(/^/gm, ' ');
}
