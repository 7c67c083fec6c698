//! Expressions as programs of a stack machine: no pointer is followed in the inner loop, and sums of places take one operation each.

use crate::expression::{Expression, Operator};

/// What the machine does with its stack, whose top is in a register.
#[derive(Clone, Copy, Debug)]
enum Operation {
    PushNumber(f64),
    PushPlace(u32),
    /// The top and a number, joined.
    WithNumber(Operator, f64),
    /// The top and a place's tokens, joined.
    WithPlace(Operator, u32),
    /// What is below the top and the top, joined.
    Join(Operator),
    Negate,
    Not,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct StackProgram {
    operations: Vec<Operation>,
}

impl StackProgram {
    pub fn new(expression: &Expression) -> Self {
        let mut operations = Vec::new();
        compile(expression, &mut operations);
        Self { operations }
    }

    /// The expression's value in `marking`. `stack` is room that is used and left empty.
    #[inline]
    pub fn value(&self, marking: &[u32], stack: &mut Vec<f64>) -> f64 {
        let tokens = |place: u32| f64::from(marking[place as usize]);
        let mut top = 0.0;
        for operation in &self.operations {
            match *operation {
                Operation::PushNumber(number) => {
                    stack.push(top);
                    top = number;
                }
                Operation::PushPlace(place) => {
                    stack.push(top);
                    top = tokens(place);
                }
                Operation::WithNumber(operator, number) => top = operator.apply(top, number),
                Operation::WithPlace(operator, place) => top = operator.apply(top, tokens(place)),
                Operation::Join(operator) => top = operator.apply(stack.pop().expect("two operands are there"), top),
                Operation::Negate => top = -top,
                Operation::Not => top = f64::from(u8::from(top == 0.0)),
            }
        }
        stack.clear();
        top
    }
}

fn compile(expression: &Expression, operations: &mut Vec<Operation>) {
    match expression {
        Expression::Number(number) => operations.push(Operation::PushNumber(*number)),
        Expression::Place(place) => operations.push(Operation::PushPlace(*place as u32)),
        Expression::Negate(operand) => {
            compile(operand, operations);
            operations.push(Operation::Negate);
        }
        Expression::Not(operand) => {
            compile(operand, operations);
            operations.push(Operation::Not);
        }
        Expression::Binary(operator, left, right) => {
            compile(left, operations);
            match **right {
                Expression::Number(number) => operations.push(Operation::WithNumber(*operator, number)),
                Expression::Place(place) => operations.push(Operation::WithPlace(*operator, place as u32)),
                _ => {
                    compile(right, operations);
                    operations.push(Operation::Join(*operator));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expressions() -> impl Strategy<Value = Expression> {
        use Operator::*;
        let leaf = prop_oneof![(-3.0_f64..3.0).prop_map(Expression::Number), (0_usize..3).prop_map(Expression::Place)];
        leaf.prop_recursive(6, 40, 2, |inner| {
            let operators = [Add, Subtract, Multiply, Divide, Min, Max, Less, AtMost, Greater, AtLeast, Equal, Unequal, And, Or];
            prop_oneof![
                inner.clone().prop_map(|operand| Expression::Negate(Box::new(operand))),
                inner.clone().prop_map(|operand| Expression::Not(Box::new(operand))),
                (prop::sample::select(operators.to_vec()), inner.clone(), inner).prop_map(|(operator, left, right)| Expression::Binary(
                    operator,
                    Box::new(left),
                    Box::new(right)
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_program_has_the_value_of_its_expression(expression in expressions(), marking in prop::array::uniform3(0_u32..5)) {
            let mut stack = Vec::new();
            let value = StackProgram::new(&expression).value(&marking, &mut stack);
            prop_assert_eq!(value.to_bits(), expression.value(&marking).to_bits());
            prop_assert!(stack.is_empty());
        }
    }
}
