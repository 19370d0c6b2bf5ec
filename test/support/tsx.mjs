/**
 * Lets Node run the TypeScript sources in the main thread and in worker threads alike; `--import tsx` alone does not
 * reach the latter on Node 20.
 */
import { register } from 'tsx/esm/api';

register();
