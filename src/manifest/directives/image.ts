/** `image <id> <reference>`: a container image, kept under `images/`. */
import type { Word } from '../../core/diagnostic.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { eachRepeated, word, type Asked, type Directive } from '../directive.ts';
import { finding, quoted, type Find } from '../rules.ts';

export interface ImageRequest extends Asked {
  readonly kind: 'image';
  readonly id: Word;
  /** As written. */
  readonly source: Word;
  /** Normalised, for an image of a registry. */
  readonly reference: string | undefined;
  /** Path as written, for a local image archive. */
  readonly archive: string | undefined;
  readonly remoteLoad: boolean;
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const NO_REMOTE_LOAD = 'no_remote_load';
const PIN = 'name a version: registry/name:tag, or registry/name:tag@sha256:…';

function checkId(id: Word, find: Find): boolean {
  if (ID.test(id.text) && !id.text.includes('..')) return true;
  const hint = 'letters, digits, ".", "_", "-", no "..", at most 128 characters';
  find(finding('image/id', id.place, `${quoted(id.text)} cannot be an image id`, hint));
  return false;
}

function readReference(source: Word, find: Find): string | undefined {
  const ref = parseImageRef(source.text);
  if (typeof ref === 'string') {
    const hint = 'name:tag, registry/name:tag, or registry/name:tag@sha256:<64 hex digits>';
    find(finding('image/reference', source.place, `the image reference does not parse: ${ref}`, hint));
    return undefined;
  }
  if (ref.digest === undefined && ref.tag === 'latest') {
    const written = source.text.endsWith(':latest');
    if (written) find(finding('image/latest', source.place, 'the tag "latest" names another image every day', PIN));
    else find(finding('image/untagged', source.place, 'no tag and no digest: the tag "latest" is meant', PIN));
  }
  return formatImageRef(ref);
}

export const image: Directive<ImageRequest> = {
  keyword: 'image',
  kind: 'image',
  usage: `image <id> <[registry/]name:tag[@sha256:…] or path.tar> [${NO_REMOTE_LOAD}]`,
  about:
    'A container image, from a registry or, when the source ends in `.tar`, from an image archive beside the Manifest. ' +
    `\`${NO_REMOTE_LOAD}\`: the image is not looked for on other nodes.`,
  yields: '`images/`',
  columns: { needed: 2, optional: [NO_REMOTE_LOAD] },
  parse(line, find) {
    const [id, source] = [word(line, 0), word(line, 1)];
    const isArchive = source.text.endsWith('.tar');
    const reference = isArchive ? undefined : readReference(source, find);
    if (isArchive && source.text.startsWith('/')) {
      find(finding('asset/absolute-path', source.place, 'an absolute path works on this machine only'));
    }
    const valid = checkId(id, find) && (isArchive || reference !== undefined);
    if (!valid) return undefined;
    const archive = isArchive ? source.text : undefined;
    const { keyword, place, words } = line;
    return { kind: 'image', keyword, place, id, source, reference, archive, remoteLoad: words.length === 2 };
  },
  check(requests, find) {
    eachRepeated(
      requests,
      ({ id }) => id.text,
      ({ id, source }, first) => {
        const same = source.text === first.source.text;
        const what = same ? 'this image already stands' : 'another image already stands';
        find(
          finding(
            'image/duplicate-id',
            id.place,
            `${what} under the id ${quoted(id.text)} in line ${first.place.line}`,
          ),
        );
      },
    );
    eachRepeated(
      requests,
      ({ reference }) => reference,
      ({ id, source }, first) => {
        if (id.text === first.id.text) return;
        const where = `in line ${first.place.line} under the id ${quoted(first.id.text)}`;
        find(finding('image/duplicate-image', source.place, `this image already stands ${where}`));
      },
    );
  },
  plan: (requests) =>
    requests.map(({ id, reference, archive, remoteLoad }) => ({
      kind: 'image',
      id: id.text,
      reference,
      archive,
      remoteLoad,
    })),
};
