(** Tables that move as far as the bound says: the sensitivity is exact, not only enough. *)

Require Import Reals Lra Psatz List Permutation Lia.
From Tacit Require Import Sums Formulas Model Optimum Blocks.
Import ListNotations.
Local Open Scope R_scope.

(** A vector in the plane of the first two columns. *)
Definition plane (a b : R) : vector := fun i => match i with 0%nat => a | 1%nat => b | _ => 0 end.

Lemma below_pair n f : (2 <= n)%nat -> (forall i, (2 <= i)%nat -> f i = 0) ->
  below n f = f 0%nat + f 1%nat.
Proof.
  intros wide zero. destruct n as [| [| n]]; [lia | lia |]. clear wide. induction n as [| n IH].
  - unfold below. cbn. lra.
  - rewrite below_S, IH, (zero (S (S n))) by lia. lra.
Qed.

Lemma below_two n f a b : (2 <= n)%nat -> (forall i, f i = plane a b i) -> below n f = a + b.
Proof.
  intros wide same. rewrite below_pair; [now rewrite !same | exact wide |].
  intros [| [| i]] outside; [lia | lia | apply same].
Qed.

Lemma plane_norm d a b X : (2 <= d)%nat -> 0 <= X -> a * a + b * b = X * X ->
  norm d (plane a b) = X.
Proof.
  intros wide radius circle. unfold norm, dot. rewrite (below_two d _ (a * a) (b * b));
    [| exact wide |].
  - rewrite circle. now apply sqrt_square.
  - intros [| [| i]]; cbn; lra.
Qed.

Section Exact.
Variables (d : nat) (X Y : R) (p : weights reals).
Hypothesis radius : 0 < X.
Hypothesis bound : 0 < Y.
Let W := w p * Y / X.
Let V := v p * (Y * Y) / (X * X).

(** Two rows of norm X with cosine s and responses A·Y and −B·Y. *)
Definition first (A : R) : row := {| x := plane X 0; y := Y * A |}.
Definition second (s B : R) : row := {| x := plane (X * s) (X * sqrt (1 - s * s)); y :=
  - (Y * B) |}.

Lemma first_legal A : (2 <= d)%nat -> 0 <= A <= 1 -> legal d X Y (first A).
Proof.
  intros wide share. split.
  - apply Req_le, plane_norm; [exact wide | lra | ring].
  - cbn. rewrite Rabs_right; nra.
Qed.

Lemma second_legal s B : (2 <= d)%nat -> 0 <= s <= 1 -> 0 <= B <= 1 -> legal d X Y (second s B).
Proof.
  intros wide cosine share. split.
  - apply Req_le, plane_norm; [exact wide | lra |].
    transitivity (X * X * (s * s) + X * X * (sqrt (1 - s * s) * sqrt (1 - s * s))); [ring |].
    rewrite sqrt_sqrt by nra. ring.
  - cbn. rewrite Rabs_Ropp, Rabs_right; nra.
Qed.

Lemma pair_apart s A B :
  (2 <= d)%nat -> 0 <= s <= 1 ->
  change_squared d p (of_rows [first A] 0) (of_rows [second s B] 0)
    = square reals (X * X) * spread W V s A B.
Proof.
  intros wide cosine. set (q := sqrt (1 - s * s)).
  assert (q * q = 1 - s * s) as circle by (apply sqrt_sqrt; nra).
  unfold change_squared, of_rows, sums. cbn [xtx xty yty count eigenvalue total fold_right length].
  rewrite (below_two d _ (Rsqr (X * X - X * s * (X * s))
    + Rsqr (X * s * (X * q))) (Rsqr (X * q * (X * s)) + Rsqr (X * q * (X * q))));
    [| exact wide |].
  2: { intros [| [| i]]; cbn [plane]; (erewrite below_two; [| exact wide |]).
       2: { intros [| [| k]]; cbn; unfold Rsqr; ring_simplify; reflexivity. }
       { unfold Rsqr, q. ring. }
       2: { intros [| [| k]]; cbn; unfold Rsqr; ring_simplify; reflexivity. }
       { unfold Rsqr, q. ring. }
       2: { intros k. instantiate (1 := 0). instantiate (1 := 0). destruct k
              as [| [| k]]; cbn; unfold Rsqr; ring. }
       ring. }
  rewrite (below_two d _ (Rsqr (Y * A * X + Y * B * (X * s))) (Rsqr (Y * B * (X * q))));
    [| exact wide |].
  2: { intros [| [| i]]; cbn; unfold Rsqr, q; ring. }
  unfold spread, square, W, V. cbn [times reals].
  transitivity (X * X * (X * X) * ((1 - s * s) * (1 - s * s) + 2 * (s * s) * (q * q)
    + q * q * (q * q))
    + Rsqr (w p) * (Y * Y * (X * X)) * (A * A + 2 * (A * B * s) + B * B * (s * s + q * q))
    + Rsqr (v p) * Rsqr (Y * Y * (A * A - B * B))).
  { unfold first, second, Rsqr. cbn [x y]. ring. }
  rewrite circle. unfold Rsqr. field. lra.
Qed.

Lemma pair_exact s A B :
  (2 <= d)%nat -> e p = 0 -> 0 <= s <= 1 -> 0 <= A <= 1 -> 0 <= B <= 1 ->
    spread W V s A B = diameter reals W V ->
  exists D D', (forall r, In r D \/ In r D' -> legal d X Y r) /\ replace_one D D' /\
    change d p (of_rows D 0) (of_rows D' 0) = sqrt (sensitivity_squared reals ReplaceOne 1 X Y p).
Proof.
  intros wide quiet cosine one other attained. exists [first A], [second s B]. split; [| split].
  - intros r [[<- | []] | [<- | []]]; [now apply first_legal | now apply second_legal].
  - exists (first A), (second s B), []. split; apply Permutation_refl.
  - unfold change. f_equal. rewrite pair_apart, attained by assumption.
    unfold sensitivity_squared, rows_squared, lever. cbn [at_most whole reals].
    destruct (Rle_dec 1 1) as [_ | never]; [| exfalso; lra].
    fold (W : reals). unfold W, V, square. cbn [plus minus times over whole reals]. rewrite quiet.
    ring.
Qed.

Theorem replace_one_attained :
  (2 <= d)%nat -> e p = 0 ->
  exists D D', (forall r, In r D \/ In r D' -> legal d X Y r) /\ replace_one D D' /\
    change d p (of_rows D 0) (of_rows D' 0) = sqrt (sensitivity_squared reals ReplaceOne 1 X Y p).
Proof.
  intros wide quiet.
  enough (exists s A B, 0 <= s <= 1 /\ 0 <= A <= 1 /\ 0 <= B <= 1 /\
    spread W V s A B = diameter reals W V)
    as (s & A & B & cosine & one & other & attained)
      by exact (pair_exact s A B wide quiet cosine one other attained).
  assert (exists s A B, 0 <= s <= 1 /\ 0 <= A <= 1 /\ 0 <= B <= 1 /\
    spread W V s A B = one_zero reals W V) as zero.
  { exists 0, 1, 0. repeat split; try lra. unfold spread, one_zero, Rsqr. cbn. ring. }
  unfold diameter. cbn [at_most times whole reals]. destruct (Rle_dec (W * W) 2) as [low | high].
  - apply larger_is_one; [| exact zero]. pose proof (Rle_0_sqr W) as nonneg. unfold Rsqr in nonneg.
    exists (W * W / 2), 1, 1. repeat split; try lra. unfold spread, opposite, Rsqr. cbn. field.
  - apply larger_is_one; [| exact zero].
    assert (exists s A B, 0 <= s <= 1 /\ 0 <= A <= 1 /\ 0 <= B <= 1 /\
      spread W V s A B = 4 * (W * W)) as flipped.
    { exists 1, 1, 1. repeat split; try lra. unfold spread, Rsqr. ring. }
    unfold parallel. cbn [at_most times whole reals].
    destruct (Rle_dec (V * V) (2 * (W * W))) as [light | heavy]; [exact flipped |].
    apply larger_is_one; [exact flipped |].
    destruct (smaller_response_is W V ltac:(lra)) as [half _].
    exists 1, 1, (smaller_response reals W V). repeat split; try lra. rewrite expand.
    unfold spread, Rsqr. ring.
Qed.

(** Add-remove: one row at the bounds, in any number of columns. *)
Definition extreme : row := {| x := fun i => match i with 0%nat => X | _ => 0 end; y := Y |}.

Theorem add_remove_attained :
  (1 <= d)%nat -> e p = 0 ->
  exists D D', (forall r, In r D \/ In r D' -> legal d X Y r) /\ add_remove D D' /\
    change d p (of_rows D 0) (of_rows D' 0) = sqrt (sensitivity_squared reals AddRemove 1 X Y p).
Proof.
  intros some quiet. exists [extreme], []. split; [| split].
  - intros r [[<- | []] | []]. split.
    + unfold norm, dot. rewrite (below_single d 0); [| lia | intros [| i] other; [lia | cbn; ring]].
      cbn. rewrite sqrt_square; lra.
    + cbn. rewrite Rabs_right; lra.
  - exists extreme. left. apply Permutation_refl.
  - unfold change. f_equal. unfold change_squared, of_rows, sums.
    cbn [xtx xty yty count eigenvalue total fold_right length].
    rewrite (below_single d 0); [| lia |].
    2: { intros [| i] other; [lia |]. rewrite (below_single d 0); [| lia | intros [| k] apart;
           [lia | cbn; unfold Rsqr; ring]].
         cbn. unfold Rsqr. ring. }
    rewrite (below_single d 0); [| lia | intros [| k] other; [lia | cbn; unfold Rsqr; ring]].
    rewrite (below_single d 0); [| lia | intros [| i] other; [lia | cbn; unfold Rsqr; ring]].
    unfold sensitivity_squared, rows_squared, lever. cbn [at_most whole reals].
    destruct (Rle_dec 1 1) as [_ | never]; [| exfalso; lra].
    unfold longest, square, Rsqr. cbn. rewrite quiet. field. lra.
Qed.
End Exact.
