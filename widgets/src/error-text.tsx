/** Why something that a person asked for was not done, if it was not; read out at once. */
export const ErrorText = ({ text }: { text: string }) =>
  text ? (
    <p class="sagents-error-text" role="alert">
      {text}
    </p>
  ) : null;
