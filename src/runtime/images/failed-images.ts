/** Failures of single images: the others are loaded all the same. */
import { CurlewError, type ErrorCode } from '../../core/errors.ts';
import type { RequiredImage } from './required-images.ts';

/** Codes of errors about one image: its files in the package, or what the runtime makes of it. */
const OF_ONE_IMAGE: ReadonlySet<ErrorCode> = new Set([
  'IMAGE_INVALID',
  'DIGEST_MISMATCH',
  'FILE_UNUSABLE',
  'IMAGE_LOAD_FAILED',
  'UNSUPPORTED',
]);

/** All images except those that it names are loaded. */
export class FailedImages extends CurlewError {
  constructor(errors: readonly CurlewError[]) {
    const [first, ...more] = errors;
    const message = [first?.message, ...more.map((error) => error.message)].join('; ');
    super(first?.code ?? 'IMAGE_LOAD_FAILED', message, { hint: first?.hint, cause: first });
  }
}

export interface Failures {
  readonly of: (image: RequiredImage) => CurlewError | undefined;
  /** Runs work on one image. If that fails for this image only, keeps the error, with its name, and returns undefined. */
  readonly keep: <Result>(image: RequiredImage, work: () => Promise<Result>) => Promise<Result | undefined>;
  /** Throws {@link FailedImages} if an image has failed. */
  readonly check: () => void;
}

export function createFailures(): Failures {
  const failed = new Map<RequiredImage, CurlewError>();
  return {
    of: (image) => failed.get(image),
    keep: async (image, work) => {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof CurlewError) || !OF_ONE_IMAGE.has(error.code)) throw error;
        const { message } = error;
        const named = message.includes(image.reference) ? message : `image ${image.reference}: ${message}`;
        failed.set(image, error.with({ message: named, cause: error }));
        return undefined;
      }
    },
    check: () => {
      if (failed.size > 0) throw new FailedImages([...failed.values()]);
    },
  };
}
