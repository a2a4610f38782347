// What goes wrong with a recipe.

/** A mistake of the person at the controls, told in one sentence. */
export class RecipeError extends Error {}

/** The document is not wanted any more: another one was asked for. */
export class Superseded extends Error {}
